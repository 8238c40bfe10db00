/** Regions in which new databases can be created: those of the active clusters. */
import type { Context, Db } from "../../context";
import { BasetideError } from "../../errors";

/** Where the common region codes are. An operator may use any other code. */
const places: Record<string, string> = {
  "us-east-1": "N. Virginia",
  "us-east-2": "Ohio",
  "us-west-1": "N. California",
  "us-west-2": "Oregon",
  "ca-central-1": "Montreal",
  "sa-east-1": "São Paulo",
  "eu-west-1": "Ireland",
  "eu-west-2": "London",
  "eu-west-3": "Paris",
  "eu-central-1": "Frankfurt",
  "eu-central-2": "Zurich",
  "eu-north-1": "Stockholm",
  "eu-south-1": "Milan",
  "af-south-1": "Cape Town",
  "ap-south-1": "Mumbai",
  "ap-northeast-1": "Tokyo",
  "ap-northeast-2": "Seoul",
  "ap-southeast-1": "Singapore",
  "ap-southeast-2": "Sydney",
};

/** `us-west-2 (Oregon)`; a code that is not known alone. */
export function regionName(code: string): string {
  return Object.hasOwn(places, code) ? `${code} (${places[code]})` : code;
}

/** Returns the codes of all regions that accept new databases, in order. */
export async function listRegions(db: Db): Promise<string[]> {
  const rows = await db<{ region: string }[]>`
    select distinct region from clusters where state = 'active' order by region`;
  return rows.map(({ region }) => region);
}

/** Returns the region in which the account's next database is created, unless another one is chosen. */
export async function regionOfAccount(
  { db, config }: Pick<Context, "db" | "config">,
  accountId: string,
): Promise<string | null> {
  const [[account], regions] = await Promise.all([
    db<{ region: string | null }[]>`select region from accounts where id = ${accountId}`,
    listRegions(db),
  ]);
  if (account?.region) return account.region;
  return regions.includes(config.defaultRegion) ? config.defaultRegion : (regions[0] ?? null);
}

/** @throws BasetideError `destination_invalid` if no active cluster is in the region */
export async function requireRegion(db: Db, region: string | undefined): Promise<void> {
  if (region === undefined) return;
  const regions = await listRegions(db);
  if (regions.includes(region)) return;
  throw new BasetideError(
    "destination_invalid",
    `New databases cannot be created in the region ${JSON.stringify(region)}. Choose one of: ${regions.join(", ")}`,
  );
}
