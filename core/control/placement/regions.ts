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

/** The location of a server that runs next to the service, as that of `bun run up`. */
export const THIS_MACHINE = "this machine";

/** A region in which new databases can be created. */
export interface Region {
  code: string;
  /** Where data in it lies, as pages say it; null: the operator has not said it. */
  location: string | null;
}

/** Says where data lies: `us-west-2 (Oregon)`; `this machine`; a code that is not known alone. */
export function locationName(location: string): string {
  return Object.hasOwn(places, location) ? `${location} (${places[location]})` : location;
}

/** Says of a new database who keeps it where, as far as that is known. */
export function createdAt(location: string | null): string {
  if (location === THIS_MACHINE) return `created on ${location}`;
  return `created and hosted by us${location === null ? "" : ` in ${locationName(location)}`}`;
}

/** Returns all regions that accept new databases, by code. Of servers in one region, each could get them. */
export async function listRegions(db: Db): Promise<Region[]> {
  return db<Region[]>`
    select region as code, case when count(*) = count(location) then min(location) end as location
    from clusters where state = 'active' group by region order by region`;
}

/** Returns the code of the region in which the account's next database is created, unless another one is chosen. */
export async function regionOfAccount(
  { db, config }: Pick<Context, "db" | "config">,
  accountId: string,
): Promise<string | null> {
  const [[account], regions] = await Promise.all([
    db<{ region: string | null }[]>`select region from accounts where id = ${accountId}`,
    listRegions(db),
  ]);
  if (account?.region) return account.region;
  const isThere = regions.some(({ code }) => code === config.defaultRegion);
  return isThere ? config.defaultRegion : (regions[0]?.code ?? null);
}

/** Where the account's next database will be, in the region with this code if one is chosen; null: not known. */
export async function locationOf(
  ctx: Pick<Context, "db" | "config">,
  accountId: string,
  chosen: string | undefined,
): Promise<string | null> {
  const [regions, usual] = await Promise.all([listRegions(ctx.db), regionOfAccount(ctx, accountId)]);
  return regions.find(({ code }) => code === (chosen ?? usual))?.location ?? null;
}

/** @throws BasetideError `destination_invalid` if no active cluster is in the region */
export async function requireRegion(db: Db, region: string | undefined): Promise<void> {
  if (region === undefined) return;
  const regions = (await listRegions(db)).map(({ code }) => code);
  if (regions.includes(region)) return;
  throw new BasetideError(
    "destination_invalid",
    `New databases cannot be created in the region ${JSON.stringify(region)}. Choose one of: ${regions.join(", ")}`,
  );
}
