/**
 * Notifications, attachment links, status pages and invitations that are made up: each must be looked up, so that a flood of
 * them could keep the control plane busy for all.
 */
import { type Attack, paced, Tally } from "../attack";
import { strangersAddress, WAYS } from "../who";

const PER_ROUND = 300;
const PER_SECOND = 100;
const ASKED = 4;
/** The owner's page alone takes some ms, ms. */
const SLOW_MS = 4000;

const hex = (length: number) => crypto.randomUUID().replaceAll("-", "").slice(0, length);

export const forgedLinks: Attack = {
  name: "forged-links",
  finding: "S37",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const source = await service.sourceBase("Linked");
    const key = await service.key({ [source.id]: "create" });
    const base = await service.connect(victim, source, { api_key: key, settings: { live: true } });
    const owner = service.browser(`203.0.${random.int(1, 250)}.60`);
    await owner.post("/sign-in", { email: victim.email, password: victim.password, next: "/bases" });
    for (let round = 0; round < rounds; round++) {
      const way = random.pick(WAYS);
      const address = strangersAddress(way, random);
      let accepted = 0;
      const flood = paced(Array(PER_ROUND), PER_SECOND, async () => {
        const id = random.chance(0.5) ? base.id : `bas_${hex(20)}`;
        const path = random.pick([
          `/hooks/airtable/${id}`,
          `/attachments/${id}/tbl1/rec1/fld1/att1?sig=${hex(22)}`,
          `/status/${hex(32)}`,
          `/invitation?token=${hex(32)}`,
        ]);
        const isHook = path.startsWith("/hooks");
        const { status } = await fetch(service.consoleUrl + path, {
          method: isHook ? "POST" : "GET",
          headers: { "x-client": address(), "x-airtable-content-mac": `hmac-sha256=${hex(32)}${hex(32)}` },
          ...(isHook ? { body: "{}" } : {}),
          redirect: "manual",
          signal: AbortSignal.timeout(10_000),
        });
        if (status < 400) accepted++;
      });
      for (let at = 0; at < ASKED; at++) {
        await Bun.sleep((PER_ROUND / PER_SECOND / ASKED) * 1000);
        const from = performance.now();
        const { status } = await owner.get("/bases").catch(() => ({ status: 0 }));
        const ms = performance.now() - from;
        tally.add(
          (status !== 200 || ms > SLOW_MS) && `${way}: the owner's page got ${status} in ${ms.toFixed(0)} ms`,
        );
      }
      await flood;
      tally.addMany(PER_ROUND, accepted, "made-up link or notification was accepted");
    }
    await service.disconnect(base);
    return tally;
  },
};
