/** Preflights of browsers, which carry no key: uses up what a proxy allows, so that no page can call it. */
import { type Attack, paced, Tally } from "../attack";
import { strangersAddress, WAYS } from "../who";

/** More than one network may send in a minute. */
const PER_ROUND = 700;
const PER_SECOND = 350;
const ASKED = 4;

export const preflights: Attack = {
  name: "preflights",
  finding: "S26",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim, mallory } = service.accounts;
    const [owned, own] = await Promise.all(["Owned", "Mallory's"].map((name) => service.sourceBase(name)));
    const [ownerKey, malloryKey] = await Promise.all(
      [owned!, own!].map(({ id }) => service.key({ [id]: "create" })),
    );
    const settings = { live: false };
    const bases = [
      await service.connect(victim, owned!, { api_key: ownerKey!, settings }),
      await service.connect(mallory, own!, { api_key: malloryKey!, settings }),
    ];
    const preflight = (path: string, from: string, proxy: number, more = {}) =>
      service.call(path, undefined, {
        method: "OPTIONS",
        headers: {
          origin: "https://app.example",
          "access-control-request-method": "GET",
          "access-control-request-headers": "authorization",
          "x-client": from,
          ...more,
        },
        proxy,
        timeoutMs: 10_000,
      });
    for (let round = 0; round < rounds; round++) {
      const way = random.pick(WAYS);
      const proxy = random.int(0, 1);
      const address = strangersAddress(way, random);
      const isOwn = way === "a valid key of their own";
      const path = `${(isOwn ? own! : owned!).id}/Tasks`;
      const key = isOwn ? { authorization: `Bearer ${malloryKey}` } : {};
      let refused = 0;
      const flood = paced(Array(PER_ROUND), PER_SECOND, async () => {
        if ((await preflight(path, address(), proxy, key)).status === 429) refused++;
      });
      for (let at = 0; at < ASKED; at++) {
        await Bun.sleep((PER_ROUND / PER_SECOND / ASKED) * 1000);
        const asked = await preflight(`${owned!.id}/Tasks`, "203.0.113.20", proxy).catch(() => ({
          status: 0,
        }));
        tally.add(
          (asked.status === 0 || asked.status >= 400) && `${way}: the owner's preflight got ${asked.status}`,
        );
        const { status } = await service.call(`${owned!.id}/Tasks?maxRecords=1`, ownerKey, { proxy });
        tally.add(status !== 200 && `${way}: the owner's read got ${status}`);
      }
      await flood;
      tally.addMany(PER_ROUND, 0, "");
      if (way === "one address") tally.add(refused === 0 && "one network had no limit");
    }
    for (const base of bases) await service.disconnect(base);
    return tally;
  },
};
