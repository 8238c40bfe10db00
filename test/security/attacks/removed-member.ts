/** A member who has seen everything is removed, and what they saw is rotated: nothing that they stored still works. */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import type { ConsoleClient } from "../../support/console-client";
import { until } from "../../support/poll";
import { Account } from "../account";
import { type Attack, Tally } from "../attack";
import { PASSWORD, person, signIn } from "../people";
import type { Connected, Service } from "../service";

/** The rotation ends open connections within this time, ms. */
const ENDED_MS = 5000;

/** What the member stored. */
interface Kept {
  browser: ConsoleClient;
  token: string;
  url: string;
  /** Of a SQL user that the member created. */
  userUrl: string;
  sql: postgres.Sql;
}

export const removedMember: Attack = {
  name: "removed-member",
  finding: "S16",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const [owner, friend] = [await person(service, random), await person(service, random)];
      const source = await service.sourceBase("Shared with a member");
      const key = await service.key({ [source.id]: "create" });
      const base = await service.connect(owner, source, { api_key: key, settings: { live: false } });
      const kept = await join(service, owner, friend, base, random);
      const members = await owner.ask<{ user_id: string; email: string }[]>("GET", "members");
      const { user_id } = members.find(({ email }) => email === friend.email)!;
      const removal = { rotate_credentials: true, revoke_attachment_links: true };
      await owner.ask("DELETE", `members/${user_id}`, removal);
      await tryAll(service, kept, base, tally);
      await kept.sql.end({ timeout: 1 });
      // The other members continue.
      const { status } = await owner.api("GET", `bases/${base.id}`);
      tally.add(status !== 200 && `the owner's own token: ${status}`);
      await service.disconnect(base);
    }
    return tally;
  },
};

/** Invites a member, who joins and copies everything that members see. */
async function join(
  service: Service,
  owner: Account,
  friend: Account,
  base: Connected,
  random: Random,
): Promise<Kept> {
  const owners = await signIn(service, owner, random);
  await owners.post("/account/members", { email: friend.email });
  const { link } = await service.mailbox.next(friend.email);
  const browser = await signIn(service, friend, random);
  await browser.post("/invitation", { token: new URL(link).searchParams.get("token") ?? "" });
  await browser.post("/account/switch", { account: owner.id });
  await browser.post("/account/tokens", { name: "kept", read: "on", credentials: "on" });
  const page = await browser.get("/account/tokens");
  const token = /\bbt_[A-Za-z0-9_-]{43}/.exec(page.text)?.[0] ?? "";
  const member = new Account(owner.id, "member", friend.email, PASSWORD, token, service.consoleUrl);
  const url = await member.credentials(base.id);
  const { credentials } = await member.ask<{ credentials: { url: string } }>(
    "POST",
    `bases/${base.id}/sql-users`,
    { name: "Mine" },
  );
  const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
  await sql`select 1`;
  if (!(await browser.get("/bases")).text.includes(base.id)) throw new Error("the member sees no base");
  return { browser, token, url, userUrl: credentials.url, sql };
}

async function tryAll(service: Service, kept: Kept, base: Connected, tally: Tally): Promise<void> {
  const old = { authorization: `Bearer ${kept.token}` };
  for (const path of ["bases", `bases/${base.id}`, `bases/${base.id}/credentials`, "members", "audit"]) {
    const { status } = await fetch(`${service.consoleUrl}/api/v1/${path}`, { headers: old });
    tally.add(status !== 401 && `their token: ${path}: ${status}`);
  }
  for (const path of ["/bases", `/bases/${base.id}`, `/bases/${base.id}/connect`, "/account/members"]) {
    const { status, text } = await kept.browser.get(path);
    // A not-found page repeats the requested id.
    const isShown = status === 200 && text.includes(base.id);
    const isTold = text.includes(new URL(kept.url).pathname.slice(1));
    tally.add((isShown || isTold) && `their browser sees the base on ${path}: ${status}`);
  }
  for (const [whose, url] of Object.entries({ their: kept.url, "their SQL user's": kept.userUrl })) {
    const again = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false, connect_timeout: 10 });
    tally.add((await answers(again)) && `${whose} password opens the database`);
    await again.end({ timeout: 1 });
  }
  const isEnded = await until(async () => !(await answers(kept.sql)), {
    what: "their connection is ended",
    timeoutMs: ENDED_MS,
    intervalMs: 50,
  }).catch(() => false);
  tally.add(!isEnded && "their open connection goes on");
}

const answers = (sql: postgres.Sql) =>
  sql`select 1`.then(
    () => true,
    () => false,
  );
