/** Removing a member revokes their access, and shows what it does not revoke. */
import postgres from "postgres";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createToken } from "../../../core/control/accounts";
import { newId } from "../../../core/ids";
import { endSessionsOf, withAdmin } from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { type TestConsole, testConsole } from "../../support/console-support";
import { caller, connectBase } from "../../support/control-support";
import { until } from "../../support/poll";
import { startProgram } from "../../support/program";

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

type Person = Awaited<ReturnType<TestConsole["person"]>>;

/** An owner with a base that has attachment links, and a member who has seen its password. */
async function team() {
  const [owner, friend] = [await made.person(), await made.person()];
  const call = caller(made.app);
  const { body: base } = await connectBase(call, owner.token);
  const links = { token: owner.token, body: { own_attachment_urls: true } };
  expect((await call("PATCH", `/api/v1/bases/${base.id}`, links)).status).toBe(200);
  await owner.post("/account/members", { email: friend.email });
  const invitation = new URL((await made.nextMail(friend.email)).path, "http://console");
  await friend.post("/invitation", { token: invitation.searchParams.get("token")! });
  const [user] = await made.control.ctx.db<{ id: string }[]>`
    select id from users where email = ${friend.email}`;
  const path = `/api/v1/bases/${base.id}/credentials`;
  const url = async () => (await call("GET", path, { token: owner.token })).body.url as string;
  const version = async () => {
    const [row] = await made.control.ctx.db<{ version: number }[]>`
      select attachment_key_version as version from bases where id = ${base.id}`;
    return row!.version;
  };
  const users = `/api/v1/bases/${base.id}/sql-users`;
  const sqlUser = async () =>
    (await call("POST", users, { token: owner.token, body: { name: "Metabase" } })).body.credentials
      .url as string;
  return { owner, friend, userId: user!.id, call, url, version, sqlUser };
}

async function opens(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 10 });
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

const status = async (call: ReturnType<typeof caller>, person: Person, token = person.token) =>
  (await call("GET", "/api/v1/bases", { token })).status;

test("S16: the page shows which credentials remain, and revokes them if the owner wants", async () => {
  const { owner, friend, userId, call, url, version, sqlUser } = await team();
  const [seen, seenUser] = [await url(), await sqlUser()];
  const sql = postgres(seen, { max: 1, onclose: () => {} });
  await sql`select 1`;
  const page = await owner.get(`/account/members/${userId}/remove`);
  expect(page.text).toContain(`Remove ${friend.email}`);
  expect(page.text).toContain("share database passwords and attachment links");
  for (const name of ["rotate_credentials", "revoke_attachment_links", "revoke_tokens"]) {
    expect(page.text).toContain(`name="${name}"`);
  }
  const before = await version();
  const all = { rotate_credentials: "on", revoke_attachment_links: "on", revoke_tokens: "on" };
  const removed = await owner.post(`/account/members/${userId}/remove`, all);
  expect(removed.text).toContain(`${friend.email} was removed`);
  expect(removed.text).toContain("Database passwords rotated: 1");
  expect(removed.text).not.toContain("Still works");
  expect([await opens(seen), await opens(seenUser)]).toEqual([false, false]);
  await expect(sql`select 1`.then(() => sql`select 1`)).rejects.toThrow();
  await sql.end({ timeout: 1 });
  expect(await version()).toBe(before + 1);
  expect(await status(call, owner)).toBe(401);
  const token = await createToken(made.control.ctx.db, owner.accountId, "another");
  expect(await status(call, owner, token)).toBe(200);
}, 240_000);

test("S16: the API does the same, and lists what was rotated and what still works", async () => {
  const { owner, friend, userId, call, url, version } = await team();
  const seen = await url();
  const list = await call("GET", "/api/v1/members", { token: owner.token });
  expect(list.body.map(({ email, role }: { email: string; role: string }) => [email, role])).toEqual([
    [owner.email, "owner"],
    [friend.email, "editor"],
  ]);
  const { db } = made.control.ctx;
  const friendsToken = await createToken(db, owner.accountId, "friend's", { userId });
  const remove = (token: string, body: object) =>
    call("DELETE", `/api/v1/members/${userId}`, { token, body });
  expect((await remove(friendsToken, { rotate_credentials: true })).status).toBe(403);
  expect((await remove(owner.token, { rotate: true })).status).toBe(422);
  const before = await version();
  const { status: answered, body } = await remove(owner.token, { rotate_credentials: true });
  expect([answered, body]).toEqual([
    200,
    {
      email: friend.email,
      tokens_revoked: 1,
      databases: [{ id: expect.any(String), name: expect.stringMatching(/^bt_/), error: null }],
      attachment_links: [],
      remains: ["Attachment links: all bases", "API tokens that other members have shown them"],
    },
  ]);
  expect(await opens(seen)).toBe(false);
  expect(await opens(await url())).toBe(true);
  expect(await version()).toBe(before);
  expect(await status(call, owner, friendsToken)).toBe(401);
  expect(await status(call, owner)).toBe(200);
  expect((await remove(owner.token, {})).status).toBe(404);
  const [log] = (await call("GET", "/api/v1/audit?limit=2", { token: owner.token })).body.filter(
    ({ action }: { action: string }) => action === "credentials.rotated",
  );
  expect(log).toMatchObject({ actor: { kind: "token", name: "test" } });
}, 240_000);

test("a removal asks a cluster that does not answer once, and rotates what is on the others", async () => {
  const { owner, userId, call, url } = await team();
  const seen = await url();
  const { db, secrets } = made.control.ctx;
  let asked = 0;
  using silent = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        asked++;
        socket.end();
      },
      data: () => {},
    },
  });
  const id = newId("cluster");
  const address = secrets.encrypt(`postgres://u:p@127.0.0.1:${silent.port}/db`, `clusters.admin_url:${id}`);
  await db`
    insert into clusters (id, name, region, encrypted_admin_url, public_host, public_port)
    values (${id}, ${id}, 'away', ${address}, 'away.example', 5432)`;
  const away = [newId("database"), newId("database")];
  for (const one of away)
    await db`
      insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password, created_at)
      values (${one}, ${owner.accountId}, ${id}, ${one}, ${one}, 'x', '2020-01-01')`;
  const remove = { token: owner.token, body: { rotate_credentials: true } };
  const { body } = await call("DELETE", `/api/v1/members/${userId}`, remove);
  const errors = new Map(body.databases.map((one: { id: string; error: string }) => [one.id, one.error]));
  expect(errors.size).toBe(3);
  expect(errors.get(away[0])).toMatch(/./);
  expect(errors.get(away[1])).toBe(errors.get(away[0]));
  expect([...errors.values()].filter((error) => error === null)).toHaveLength(1);
  const once = asked;
  await expect(
    withAdmin(`postgres://u:p@127.0.0.1:${silent.port}/db`, async (sql) => sql`select 1`),
  ).rejects.toThrow();
  expect(once).toBe(asked - once);
  expect(await opens(seen)).toBe(false);
  await db`delete from databases where cluster_id = ${id}`;
  await db`delete from clusters where id = ${id}`;
}, 240_000);

test("a member who leaves revokes nothing of the account's", async () => {
  const { owner, friend, userId, call, url } = await team();
  const seen = await url();
  const page = await friend.get(`/account/members/${userId}/remove`);
  expect(page.text).toContain("Leave this account");
  expect(page.text).not.toContain("rotate_credentials");
  const left = await friend.post(`/account/members/${userId}/remove`, {
    rotate_credentials: "on",
    revoke_tokens: "on",
  });
  expect(left.location).toBe("/bases");
  expect(await opens(seen)).toBe(true);
  expect(await status(call, owner)).toBe(200);
}, 240_000);

test("without a mail server in production, an operator's link sets a password once and confirms the address", async () => {
  await using own = await testConsole({ hasMail: false, config: { isProduction: true } });
  const email = `${crypto.randomUUID()}@example.org`;
  await own.client().post("/signup", { email, password: "a first password" });
  const visitor = own.client();
  expect((await visitor.post("/sign-in", { email, password: "a first password" })).status).toBe(422);
  const { config } = own.control.ctx;
  await using program = startProgram(
    "apps/operator/main.ts",
    ["account", "reset-link", "--email", email.toUpperCase(), "--json"],
    {
      DATABASE_URL: config.databaseUrl,
      SECRET_KEY: config.secretKey,
      DATA_DIR: config.dataDir,
      CONSOLE_URL: "https://console.example",
    },
  );
  expect([await program.exited, program.errors()]).toEqual([0, ""]);
  const { link } = JSON.parse(program.output());
  expect(link).toMatch(/^https:\/\/console\.example\/reset-password\?token=/);
  const token = new URL(link).searchParams.get("token")!;
  const set = (password: string) => visitor.post("/reset-password", { token, password });
  expect((await set("a whole new one")).location).toBe("/sign-in?done=password");
  expect((await set("and another one")).status).toBe(422);
  expect((await visitor.post("/sign-in", { email, password: "a whole new one" })).status).toBe(303);
  await until(async () => (await visitor.get("/bases")).status === 200, { what: "the visitor is signed in" });
}, 240_000);

test("a cluster's admin with CREATEROLE alone ends the connections of a role that it made, and of no other", async () => {
  const suffix = crypto.randomUUID().slice(0, 8);
  const [admin, reader, other] = [`bt_admin_${suffix}`, `bt_reader_${suffix}`, `bt_other_${suffix}`];
  const urlOf = (username: string) =>
    Object.assign(new URL(inject("postgresUrl")), { username, password: "secret", pathname: admin }).href;
  await asAdmin(async (sql) => {
    await sql.unsafe(`create role ${admin} login createrole createdb password 'secret'`);
    await sql.unsafe(`create role ${other} login password 'secret'`);
    await sql.unsafe(`create database ${admin} owner ${admin}`);
  });
  const open: postgres.Sql[] = [];
  try {
    const creator = postgres(urlOf(admin), { max: 1 });
    open.push(creator);
    await creator.unsafe(`create role ${reader} login password 'secret'`);
    const [connection, untouched] = [postgres(urlOf(reader), { max: 1 }), postgres(urlOf(other), { max: 1 })];
    open.push(connection, untouched);
    const pid = async (sql: postgres.Sql) =>
      (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;
    const [before, others] = [await pid(connection), await pid(untouched)];
    await endSessionsOf(urlOf(admin), reader);
    await until(
      () =>
        asAdmin(async (sql) => (await sql`select from pg_stat_activity where pid = ${before}`).length === 0),
      { what: "the connection is gone" },
    );
    expect(await pid(untouched)).toBe(others);
    const [held] = await creator<
      { held: boolean }[]
    >`select pg_has_role(current_user, ${reader}, 'usage') as held`;
    expect(held).toEqual({ held: false });
  } finally {
    await Promise.all(open.map((sql) => sql.end({ timeout: 1 })));
    await asAdmin(async (sql) => {
      await sql.unsafe(`drop database ${admin}`);
      await sql.unsafe(`drop role if exists ${reader}; drop role ${other}; drop role ${admin}`);
    });
  }
}, 60_000);
