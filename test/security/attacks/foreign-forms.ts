/**
 * Forms of other sites, with the session of an owner who has the page open, and sign-ins that claim to come from a browser
 * that is known: what tells browsers apart must neither let a stranger in nor keep the owner out.
 */
import { randomBytes } from "node:crypto";
import { type Attack, paced, Tally } from "../attack";
import { strangersAddress, WAYS } from "../who";

const FOREIGN: Record<string, string>[] = [
  { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
  { origin: "https://evil.example", "sec-fetch-site": "same-site" },
  { origin: "null", "sec-fetch-site": "cross-site" },
  { origin: "null" },
  { origin: "https://evil.example" },
  { "sec-fetch-site": "none" },
  { "sec-fetch-site": "Same-Origin, cross-site" },
  {},
];
const FORMS: [path: string, form: Record<string, string>][] = [
  ["/account/status", { change: "on" }],
  ["/account/tokens", { name: "mine", scope: "admin" }],
  ["/account/members", { email: "mallory@example.org", role: "owner" }],
  ["/account/sessions/revoke-others", {}],
  ["/sign-out", {}],
];
const CLAIMED = 120;
const PER_SECOND = 40;

export const foreignForms: Attack = {
  name: "foreign-forms",
  finding: "S36",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    // Guesses slow down its sign-ins from new browsers, which other attacks need.
    const email = `foreign${random.int(1, 1e9)}@example.org`;
    const password = "correct horse battery";
    await service.operator("account", "create", "--email", email, "--password", password, "--json");
    const owner = service.browser(`203.0.${random.int(1, 250)}.50`);
    const signIn = (browser = owner) => browser.post("/sign-in", { email, password, next: "/bases" });
    await signIn();
    const made = service.browser(`203.0.${random.int(1, 250)}.51`);
    await made.post("/sign-in", { email: mallory.email, password: mallory.password, next: "/bases" });
    const known = [...made.cookies].find(([name]) => name.includes("device"));
    for (let round = 0; round < rounds; round++) {
      for (const headers of FOREIGN) {
        for (const [path, form] of FORMS) {
          const { status } = await owner.post(path, form, headers);
          tally.add(status !== 403 && `${path} with ${JSON.stringify(headers)} got ${status}`);
        }
      }
      const page = await owner.get("/bases");
      tally.add(page.status !== 200 && `after them the owner's page got ${page.status}`);
      const way = random.pick(WAYS);
      const address = strangersAddress(way, random);
      let accepted = 0;
      const flood = paced(Array(CLAIMED), PER_SECOND, async () => {
        const browser = service.browser(address());
        const forged = `${randomBytes(16).toString("base64url")}.1.${randomBytes(32).toString("base64url")}`;
        const isOwn = way === "a valid key of their own" && known !== undefined;
        browser.cookies.set(isOwn ? known[0] : "basetide.device", isOwn ? known[1] : forged);
        const { status } = await browser.post("/sign-in", {
          email,
          password: "a guess",
          next: "/",
        });
        if (status === 303) accepted++;
      });
      await Bun.sleep(1000);
      await owner.post("/sign-out", {});
      const { status } = await signIn();
      tally.add(status !== 303 && status !== 302 && `${way}: the owner's known browser got ${status}`);
      await flood;
      tally.addMany(CLAIMED, accepted, "sign-in of a claimed browser was accepted");
    }
    return tally;
  },
};
