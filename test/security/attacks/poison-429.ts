/**
 * A stranger who is over their own limit at the source names another account's base: its owner must not wait because of
 * that.
 */
import { type Attack, Tally } from "../attack";

/** More than the source allows one user in a second. */
const FLOOD = 150;
const BLOCKED_MS = 4000;

export const poison429: Attack = {
  name: "poison-429",
  finding: "S6",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      const [source, own] = await Promise.all([service.sourceBase("Poisoned"), service.sourceBase("Own")]);
      const ownerKey = await service.key({ [source.id]: "create" });
      const base = await service.connect(victim, source, {
        api_key: ownerKey,
        settings: { live: false },
      });
      await victim.change(base.id, { paused: true });
      const key = await service.key({ [own.id]: "create" });
      const headers = { authorization: `Bearer ${key}` };
      for (const proxy of [0, 1]) {
        const limited = Promise.withResolvers<void>();
        const flood = Promise.all(
          Array.from({ length: FLOOD }, async () => {
            const answer = await fetch(`${service.sandbox.url}/v0/meta/bases`, { headers });
            if (answer.status === 429) limited.resolve();
            await answer.text();
          }),
        );
        await Promise.race([limited.promise, flood]);
        const isWrite = random.chance(0.4);
        await service
          .call(`${source.id}/Tasks`, key, {
            proxy,
            ...(isWrite ? { method: "POST", body: { fields: {} } } : {}),
          })
          .catch(() => undefined);
        await flood;
        const asked = { proxy: 1 - proxy, timeoutMs: BLOCKED_MS };
        const owners = await service
          .call(`${source.id}/Tasks?maxRecords=1`, ownerKey, asked)
          .catch(() => undefined);
        tally.add(owners?.status !== 200 && `the owner was not answered within ${BLOCKED_MS} ms`);
      }
      await service.disconnect(base);
    }
    return tally;
  },
};
