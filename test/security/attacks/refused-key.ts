/** A key that Airtable has revoked, as one proxy knows, reads a replica at the other. */
import { until } from "../../support/poll";
import { type Attack, Tally } from "../attack";

/** Longer than a proxy relies on what it has read of the control plane, ms. */
const KNOWN_MS = 4000;
const READS = 6;

export const refusedKey: Attack = {
  name: "refused-key",
  finding: "S29",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const source = await service.sourceBase("Read");
    const ownKey = await service.key({ [source.id]: "create" });
    const base = await service.connect(victim, source, { api_key: ownKey, settings: { live: true } });
    const headers = { "x-basetide-read": "replica" };
    const read = async (key: string, proxy: number) => {
      const answer = await service.call(`${source.id}/Tasks?maxRecords=2`, key, { headers, proxy });
      return answer.headers.get("x-basetide-answered-by");
    };
    for (let round = 0; round < rounds; round++) {
      const key = await service.key({ [source.id]: "read" });
      for (const proxy of [0, 1]) {
        await until(async () => (await read(key, proxy)) === "replica", {
          what: `proxy ${proxy} answers from the replica`,
          timeoutMs: 20_000,
          intervalMs: 300,
        });
      }
      await service.sandbox.call("DELETE", "keys", { token: key });
      const first = random.int(0, 1);
      const { status } = await service.call(`${source.id}/Tasks`, key, {
        headers: { "x-basetide-read": "source" },
        proxy: first,
      });
      if (status !== 401) throw new Error(`the revoked key was answered with ${status}`);
      await Bun.sleep(KNOWN_MS);
      for (let at = 0; at < READS; at++) {
        const by = await read(key, at);
        tally.add(by === "replica" && `proxy ${at % 2} answered a revoked key from the replica`);
      }
    }
    await service.disconnect(base);
    return tally;
  },
};
