/** An account's own database accepts connections and never answers: others who write to the same base must not wait. */
import { type Attack, Tally } from "../attack";
import { ownDatabase } from "./hostile-postgres";
import { hostileServer } from "./hostile-server";

const WRITES = 4;
/** A single write takes well below 200 ms; one that waits for a silent database takes 3 s or more, ms. */
const SLOW_MS = 2000;

export const slowNeighbor: Attack = {
  name: "slow-neighbor",
  finding: "S13",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      await using database = await ownDatabase(service);
      await using server = await hostileServer("pass", random, database.url);
      const source = await service.sourceBase("Slow");
      const ownerKey = await service.key({ [source.id]: "create" });
      const readKey = await service.key({ [source.id]: "read" });
      const owners = await service.connect(victim, source, { api_key: ownerKey, settings: { live: false } });
      const destination = { kind: "external" as const, url: server.url };
      const theirs = await service.connect(mallory, source, {
        api_key: readKey,
        settings: { live: false },
        destination,
      });
      server.mode = random.pick(["hang", "silent-close", "hang"] as const);
      for (let write = 0; write < WRITES; write++) {
        const name = `write ${random.int(1, 1e9)}`;
        const { status, ms } = await service.call(
          `${source.id}/Tasks/${random.pick(source.recordIds)}`,
          ownerKey,
          { method: "PATCH", body: { fields: { Name: name } }, proxy: write },
        );
        const rows = await owners.sql`select from tasks where name = ${name}`;
        const isHarmed = ms > SLOW_MS || status !== 200 || rows.length === 0;
        tally.add(isHarmed && `${status} after ${ms.toFixed(0)} ms, ${rows.length} rows in the owner's SQL`);
      }
      server.mode = "pass";
      await Promise.all([service.disconnect(owners), service.disconnect(theirs)]);
    }
    return tally;
  },
};
