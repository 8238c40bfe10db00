/** An intruder's actions in an account must be in its audit log. */

import type { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import { Account } from "../account";
import { type Attack, Tally } from "../attack";
import { randomAddress, type Service } from "../service";

/** An entry is written with its action, or right after it. */
const NOTED_MS = 3000;

interface Entry {
  id: string;
  action: string;
}

export const auditGaps: Attack = {
  name: "audit-gaps",
  finding: "S14",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const account = await intruded(service, random);
      const source = await service.sourceBase("Audited");
      const key = await service.key({ [source.id]: "create" });
      // Not by the service's own helper, which reads the credentials: an entry that was just written need not be
      // repeated.
      const given = { platform: "airtable", base_id: source.id, api_key: key, settings: { live: false } };
      const base = await service.setUp(async () =>
        service.synced(account, (await account.connect(given)).id),
      );
      const { email, password } = account;
      const browser = service.browser(randomAddress(random));
      const wrong = service.browser(randomAddress(random));
      let current = password;
      const users = `bases/${base.id}/sql-users`;
      let userId = "";
      const createUser = async () => {
        const body = { name: "Metabase" };
        const made = await account.ask<{ sql_user: { id: string } }>("POST", users, body);
        userId = made.sql_user.id;
      };
      const deeds: [string, () => Promise<unknown>][] = [
        ["sign-in", () => browser.post("/sign-in", { email, password, next: "/bases" })],
        ["refused sign-in", () => wrong.post("/sign-in", { email, password: "wrong", next: "/bases" })],
        ["credentials shown by the API", () => account.api("GET", `bases/${base.id}/credentials`)],
        ["token made", () => browser.post("/account/tokens", { name: `t${round}`, read: "on" })],
        ["password reset", async () => (current = await reset(service, email, random))],
        ["credentials rotated", () => account.api("POST", `bases/${base.id}/credentials/rotate`)],
        ["SQL user created", createUser],
        ["SQL user rotated", () => account.api("POST", `${users}/${userId}/rotate`)],
        ["SQL user revoked", () => account.api("DELETE", `${users}/${userId}`)],
      ];
      for (const [what, work] of deeds) {
        const before = await entries(account);
        await work();
        const noted = await until(async () => (await entries(account)).length > before.length, {
          what: "an entry",
          timeoutMs: NOTED_MS,
          intervalMs: 50,
        }).catch(() => false);
        tally.add(!noted && `${what}: nothing in the audit log`);
      }
      if (current === password) tally.notes.push("the password was not reset");
      await service.setUp(() => account.disconnect(base.id));
    }
    return tally;
  },
};

async function intruded(service: Service, random: Random): Promise<Account> {
  const email = `audited${random.int(1, 1e9)}@example.org`;
  const password = "correct horse battery";
  const said = await service.operator(
    "account",
    "create",
    "--email",
    email,
    "--password",
    password,
    "--json",
  );
  const { id, token } = JSON.parse(said) as { id: string; token: string };
  return new Account(id, "audited", email, password, token, service.consoleUrl);
}

async function reset(service: Service, email: string, random: Random): Promise<string> {
  const browser = service.browser(randomAddress(random));
  await browser.post("/forgot-password", { email });
  const { link } = await service.mailbox.next(email);
  const token = new URL(link).searchParams.get("token") ?? "";
  await browser.post("/reset-password", { token, password: "another horse battery" });
  return "another horse battery";
}

function entries(account: Account): Promise<Entry[]> {
  return account.ask("GET", "audit?limit=1000");
}
