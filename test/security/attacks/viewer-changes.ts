/** A member who may only look: asks the operator in the account's name, and changes what belongs to the account. */
import { type Attack, Tally } from "../attack";
import { person, signIn } from "../people";

const FORMS: [string, Record<string, string>][] = [
  ["/requests", { kind: "other", message: "Make it writable" }],
  ["/requests", { kind: "region", region: "eu-central-1" }],
  ["/requests", { kind: "shared_database", message: "Both bases, please" }],
  ["/account/members", { email: "evil@example.org", role: "owner" }],
  ["/account/tokens", { name: "mine", write: "on" }],
  ["/account/workspaces", { name: "Mine", plan: "team" }],
  ["/account/alerts/webhooks", { url: "https://evil.example", form: "json" }],
];

export const viewerChanges: Attack = {
  name: "viewer-changes",
  finding: "S31",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const [owner, viewer] = [await person(service, random), await person(service, random)];
      const owners = await signIn(service, owner, random);
      await owners.post("/account/members", { email: viewer.email, role: "viewer" });
      const { link } = await service.mailbox.next(viewer.email);
      const browser = await signIn(service, viewer, random);
      await browser.post("/invitation", { token: new URL(link).searchParams.get("token") ?? "" });
      await browser.post("/account/switch", { account: owner.id });
      for (const [path, form] of FORMS) {
        const { status } = await browser.post(path, form);
        tally.add(status < 400 && `a viewer sends ${path} ${JSON.stringify(form)}: ${status}`);
      }
      const [requests, members] = await Promise.all([
        owner.ask<unknown[]>("GET", "requests"),
        owner.ask<unknown[]>("GET", "members"),
      ]);
      tally.add(requests.length > 0 && "the account has a request");
      tally.add(members.length !== 2 && `the account has ${members.length} members`);
    }
    return tally;
  },
};
