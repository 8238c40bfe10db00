/** A customer names a server as destination that agrees to TLS and then breaks it. */
import { hostilePostgres } from "../../support/hostile-postgres";
import { TLS_BEHAVIORS } from "../../support/hostile-tls";
import { type Attack, Tally } from "../attack";
import type { Service } from "../service";
import { answered, each } from "./hostile-postgres";

/** How many at once. */
const TOGETHER = 10;

export const hostileTls: Attack = {
  name: "hostile-tls",
  finding: "S4",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const names = Object.keys(TLS_BEHAVIORS).toSorted(() => random.next() - 0.5);
      for (let from = 0; from < names.length; from += TOGETHER)
        await each(tally, names.slice(from, from + TOGETHER), (name) => show(service, name), service);
    }
    return tally;
  },
};

async function show(service: Service, name: string): Promise<void> {
  await using server = await hostilePostgres();
  server.behave(TLS_BEHAVIORS[name]!);
  const source = await service.sourceBase("Hostile TLS");
  const key = await service.key({ [source.id]: "create" });
  const destination = { kind: "external", url: `${server.url()}?sslmode=require` };
  const given = { platform: "airtable", api_key: key, base_id: source.id, destination };
  await answered(service.accounts.mallory.api("POST", "bases", given));
}
