/**
 * Made-up keys for a connected base, from 60 networks: fills the queue of keys that are not proven, so that a new and
 * valid key of this base, or of another, is refused or waits.
 */
import { until } from "../../support/poll";
import { type Attack, Tally } from "../attack";
import type { Connected } from "../service";

const NETWORKS = 60;
/** One of each base. */
const NEW_KEYS = 2;
/** Until the queue is full. */
const FILLED_MS = 1000;
/** A client is told to try again after five seconds. */
const SERVED_MS = 20_000;
const AGAIN_MS = 1000;

export const newKeys: Attack = {
  name: "new-keys",
  finding: "S37",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const bases: Connected[] = [];
    for (const name of ["Attacked", "Another"]) {
      const source = await service.sourceBase(name);
      const key = await service.key({ [source.id]: "create" });
      bases.push(await service.connect(victim, source, { api_key: key, settings: { live: false } }));
    }
    const [attacked, another] = bases.map(({ source }) => source);
    for (let round = 0; round < rounds; round++) {
      const proxy = random.int(0, 1);
      // Addresses of one customer's line, or of several networks.
      const isOneLine = random.chance(0.5);
      const stop = new AbortController();
      let sent = 0;
      const strangers = Array.from({ length: NETWORKS }, async (_, at) => {
        const from = isOneLine ? `2001:db8:77:${at.toString(16)}::1` : `198.18.${at}.1`;
        while (!stop.signal.aborted) {
          const key = `patNobody.${random.int(1, 1e9)}`;
          sent++;
          await service
            .call(`${attacked!.id}/Tasks`, key, { headers: { "x-client": from }, proxy, timeoutMs: 10_000 })
            .catch(() => undefined);
          // As many as the limit of a network allows.
          await Bun.sleep(500);
        }
      });
      await Bun.sleep(FILLED_MS);
      for (let at = 0; at < NEW_KEYS; at++) {
        const { id } = at % 2 === 0 ? attacked! : another!;
        const key = await service.key({ [id]: "create" });
        const headers = { "x-client": `203.0.113.${10 + at}` };
        let last = 0;
        const from = performance.now();
        await until(
          async () => {
            last = (await service.call(`${id}/Tasks?maxRecords=1`, key, { headers, proxy })).status;
            return last === 200;
          },
          { what: "the new key is served", timeoutMs: SERVED_MS, intervalMs: AGAIN_MS },
        ).catch(() => {});
        const seconds = ((performance.now() - from) / 1000).toFixed(1);
        const which = id === attacked!.id ? "the attacked base" : "another base";
        tally.add(last !== 200 && `a new key of ${which} got ${last} for ${seconds} s`);
      }
      stop.abort();
      await Promise.all(strangers);
      tally.addMany(sent, 0, "");
    }
    for (const base of bases) await service.disconnect(base);
    return tally;
  },
};
