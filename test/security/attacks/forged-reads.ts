/**
 * By a setting of its own, one account makes the proxy answer other accounts' clients from a database that it controls.
 */
import { type Attack, Tally } from "../attack";
import { ownDatabase } from "./hostile-postgres";

const READS = 4;

export const forgedReads: Attack = {
  name: "forged-reads",
  finding: "S8",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      await using database = await ownDatabase(service);
      const source = await service.sourceBase("Forged");
      const ownerKey = await service.key({ [source.id]: "create" });
      const readKey = await service.key({ [source.id]: "read" });
      const owners = await service.connect(victim, source, { api_key: ownerKey, settings: { live: false } });
      const isOwn = random.chance(0.8);
      const theirs = await service.connect(mallory, source, {
        api_key: readKey,
        settings: { live: false, replica_reads: true },
        ...(isOwn ? { destination: { kind: "external" as const, url: database.url } } : {}),
      });
      const isPaused = random.chance(0.7);
      if (isPaused) await mallory.change(theirs.id, { paused: true });
      if (random.chance(0.5)) await service.sandbox.call("DELETE", "keys", { token: readKey });
      if (isOwn) await theirs.sql`update tasks set name = 'Pay to MALLORY', amount = 999999`;
      for (let read = 0; read < READS; read++) {
        const path = random.pick(["Tasks", `Tasks/${source.recordIds[0]}`, "Tasks?maxRecords=2"]);
        const asksReplica = read === READS - 1;
        const { text, headers } = await service.call(`${source.id}/${path}`, ownerKey, {
          ...(asksReplica ? { headers: { "x-basetide-read": "replica" } } : {}),
        });
        const by = headers.get("x-basetide-answered-by");
        // Without the header, and with the owner's setting off, the source answers: no other account's setting counts.
        const isForged = text.includes("MALLORY") || (by === "replica" && !asksReplica);
        tally.add(isForged && `read ${read + 1} of ${path} answered by the ${by}: ${text.slice(0, 90)}`);
      }
      await service.disconnect(theirs);
      await service.disconnect(owners);
    }
    return tally;
  },
};
