/** SQL users: further logins of a hosted database, each with a name, a password, and a revocation of its own. */
import type postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { runCli } from "../../../apps/cli/program";
import { consoleApp } from "../../../apps/console/app";
import { listAccounts } from "../../../core/control/accounts";
import { type Base, createBase, deleteBase } from "../../../core/control/bases";
import {
  checkReplicas,
  createSqlUser,
  type Database,
  databaseCredentials,
  getDatabase,
  listAllSqlUsers,
  listSqlUsers,
  nameSqlUsers,
  replicaDatabases,
  revokeSqlUser,
  rotateCredentials,
  rotateSqlUser,
  type SqlUser,
  type SqlUserWrites,
  saveSqlUserWrites,
  setConnectionLimit,
  setDatabaseWritable,
  startWatchdog,
} from "../../../core/control/placement";
import { recordSqlUsersSeen } from "../../../core/control/placement/sql-user-rows";
import { sqlUserCredentials } from "../../../core/control/placement/sql-users";
import { databaseUrl, endExcess } from "../../../core/replica";
import { ENFORCED_SETTINGS, ROLE_DEFAULTS } from "../../../core/replica/role-limits";
import { createSqlUserRole } from "../../../core/replica/sql-users";
import { asAdmin } from "../../support/admin";
import { canLogIn } from "../../support/can-log-in";
import { asker, authByHeader } from "../../support/console";
import {
  type Call,
  caller,
  connectAs,
  GOOD_KEY,
  type TestControl,
  testControl,
} from "../../support/control-support";
import { until } from "../../support/poll";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

const ACTOR = { kind: "user", name: "ada@example.org" } as const;

let replicas: ReplicaServer;
let control: TestControl;
let as: TestControl["ctx"] & { actor: typeof ACTOR };
let call: Call;
let token: string;
let accountId: string;
let base: Base;

beforeAll(async () => {
  replicas = await replicaServer();
  control = await testControl(replicas.clusterUrl);
  as = { ...control.ctx, actor: ACTOR };
  const account = await control.addAccount("ada@example.org");
  [token, accountId] = [account.token, account.id];
  call = caller(consoleApp(control.ctx));
  base = await connected("appOne");
}, 120_000);
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

const connected = (sourceBaseId: string) =>
  createBase(control.ctx, accountId, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId });

const databaseOf = (of: Base = base) => getDatabase(control.ctx.db, of.database.id);

async function made(name: string): Promise<{ user: SqlUser; url: string }> {
  const database = await databaseOf();
  const user = await createSqlUser(as, database, name);
  return { user, url: (await sqlUserCredentials(as, database, user)).url };
}

const revokeAll = async () => {
  const database = await databaseOf();
  for (const user of await listSqlUsers(as.db, database.id)) await revokeSqlUser(as, database, user);
};

/** SQLSTATE of what `work` fails with, or "done". */
const outcome = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(
    () => "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

const onReplicas = <T>(work: (admin: postgres.Sql) => Promise<T>, url = replicas.clusterUrl) =>
  asAdmin(work, url);

const rolesOnServer = (roles: string[]) =>
  onReplicas(async (admin) => {
    const rows = await admin<{ name: string }[]>`
      select rolname as name from pg_roles where rolname = any (${roles}::text[]) order by 1`;
    return rows.map(({ name }) => name);
  });

/** Problems and warnings that `doctor` has with the database. */
async function findings({ id }: Database) {
  const database = (await replicaDatabases(as)).find((one) => one.id === id)!;
  return checkReplicas(as, database);
}

test("each user reads with its own password; rotating or revoking one, or rotating the database's own, leaves the others", async () => {
  const database = await databaseOf();
  const own = await databaseCredentials(as, database);
  const [one, other] = [await made("Metabase"), await made("Lina")];
  expect(await listSqlUsers(as.db, database.id)).toMatchObject([
    { name: "Lina", createdBy: "ada@example.org", lastSeenAt: null },
    { name: "Metabase" },
  ]);
  for (const { url, user } of [one, other]) {
    await using reader = connectAs(url);
    const [row] = await reader.db<{ role: string; rows: number }[]>`
      select current_user::text as role, (select count(*)::int from _sync_meta) as rows`;
    expect(row).toEqual({ role: user.role, rows: expect.any(Number) });
  }

  const rotated = await rotateSqlUser(as, database, one.user);
  const works = async () => [
    await canLogIn(one.url),
    await canLogIn(rotated.url),
    await canLogIn(other.url),
    await canLogIn(own.url),
  ];
  expect(await works()).toEqual([false, true, true, true]);
  await rotateCredentials(as, database);
  expect(await works()).toEqual([false, true, true, false]);

  await using session = connectAs(rotated.url);
  expect(await session.db`select 1 as one`).toEqual([{ one: 1 }]);
  await revokeSqlUser(as, database, one.user);
  expect(await outcome(session.db`select 1`)).not.toBe("done");
  expect(await works()).toEqual([false, false, true, false]);
  expect(await rolesOnServer([one.user.role, other.user.role])).toEqual([other.user.role]);
  // Again, as after a crash between the role and its row.
  await revokeSqlUser(as, database, one.user);
  const log = await as.db<{ action: string; name: string }[]>`
    select action, details ->> 'name' as name from audit_log where action like 'sql_user.%' order by id`;
  expect(log.map(({ action, name }) => `${action} ${name}`)).toEqual([
    "sql_user.created Metabase",
    "sql_user.created Lina",
    "sql_user.rotated Metabase",
    "sql_user.revoked Metabase",
  ]);
  await revokeAll();
}, 90_000);

test("passwords that are rotated at the same time end as one, which is the one that is stored", async () => {
  const database = await databaseOf();
  const { user } = await made("Metabase");
  const stored = async () => [
    (await databaseCredentials(as, database)).url,
    (await sqlUserCredentials(as, database, user)).url,
  ];
  await Promise.all(
    [1, 2, 3, 4].flatMap(() => [rotateCredentials(as, database), rotateSqlUser(as, database, user)]),
  );
  expect(await Promise.all((await stored()).map(canLogIn))).toEqual([true, true]);
  await revokeAll();
}, 60_000);

test("I8: a user cannot write, act as the database's role or another user, or change their passwords and limits", async () => {
  const { role } = await databaseOf();
  const [one, other] = [await made("one"), await made("other")];
  await using session = connectAs(one.url);
  await using others = connectAs(other.url);
  const [held] = await others.db<{ pid: number }[]>`select pg_backend_pid() as pid`;
  await session.db`set default_transaction_read_only = off`;
  const attempts = [
    `set role ${role}`,
    `set role ${other.user.role}`,
    `set session authorization ${role}`,
    `alter role ${role} password 'mine'`,
    `alter role ${other.user.role} password 'mine'`,
    `alter role ${role} connection limit -1`,
    `alter role ${one.user.role} connection limit -1`,
    `alter role ${one.user.role} set temp_file_limit = -1`,
    `grant ${role} to ${other.user.role} with set true`,
    `grant ${role} to ${one.user.role} with set true`,
    `drop role ${role}`,
    "delete from _sync_meta",
    "create table mine (id int)",
    "create temporary table mine (id int)",
    "do $$ begin end $$",
    "select lo_create(0)",
    "select pg_advisory_lock(1)",
    `select pg_terminate_backend(${held!.pid})`,
  ];
  const answers: [string, string][] = [];
  for (const statement of attempts) {
    answers.push([statement, await outcome(session.db.unsafe(statement))]);
  }
  expect(answers.filter(([, state]) => state !== "42501")).toEqual([]);
  await revokeAll();
}, 60_000);

test("a user has the limits of the database's own role, half of its connections, and all roles together no more", async () => {
  const database = await databaseOf();
  const [one, other] = [await made("one"), await made("other")];
  const own = await databaseCredentials(as, database);
  const names = [...Object.keys(ROLE_DEFAULTS), ...Object.keys(ENFORCED_SETTINGS)];
  const settingsOf = async (url: string) => {
    await using session = connectAs(url);
    const rows = await session.db<{ name: string; value: string }[]>`
      select name, current_setting(name) as value from unnest(${names}::text[]) as name order by 1`;
    return rows.map(({ name, value }) => `${name}=${value}`);
  };
  expect(await settingsOf(one.url)).toEqual(await settingsOf(own.url));

  await using open = new AsyncDisposableStack();
  const tryOne = (url: string) => outcome(open.use(connectAs(url)).db`select 1`);
  const answers: string[] = [];
  for (const url of [one.url, other.url]) {
    for (let index = 0; index < 6; index++) answers.push(await tryOne(url));
  }
  const half = ["done", "done", "done", "done", "done", "53300"];
  expect(answers).toEqual([...half, ...half]);
  expect(await tryOne(own.url)).toBe("done");
  const roles = [database.role, one.user.role, other.user.role];
  const ended = await onReplicas((admin) =>
    endExcess(admin, {
      roles,
      databases: roles.map(() => database.name),
      connections: roles.map(() => database.connections),
      writers: [],
    }),
  );
  expect(ended).toMatchObject([{ role: database.role, reason: "connections" }]);
  await setConnectionLimit(as, database, 3);
  const limits = await onReplicas(
    (admin) => admin`
      select rolconnlimit as most from pg_roles where rolname = any (${roles}::text[]) order by rolname = ${database.role}`,
  );
  expect(limits.map(({ most }) => most)).toEqual([2, 2, 3]);
  await setConnectionLimit(as, database, database.connections);
  await revokeAll();
}, 90_000);

test("the watchdog records who is connected, and at most once a minute", async () => {
  const database = await databaseOf();
  const [seen, absent] = [await made("seen"), await made("absent")];
  const lastSeen = async () => {
    const users = await listSqlUsers(as.db, database.id);
    return new Map(users.map(({ id, lastSeenAt }) => [id, lastSeenAt]));
  };
  await using session = connectAs(seen.url);
  await session.db`select 1`;
  const watchdog = startWatchdog(control.ctx);
  try {
    await until(async () => (await lastSeen()).get(seen.user.id), {
      what: "the watchdog has seen the user",
      timeoutMs: 60_000,
    });
  } finally {
    await watchdog.stop();
  }
  expect((await lastSeen()).get(absent.user.id)).toBeNull();
  for (const [age, isRecorded] of [
    [50, false],
    [70, true],
  ] as const) {
    const [row] = await as.db<{ at: Date }[]>`
      update sql_users set last_seen_at = now() - ${age} * interval '1 second' where id = ${seen.user.id}
      returning last_seen_at as at`;
    await recordSqlUsersSeen(as.db, [seen.user.role]);
    const at = (await lastSeen()).get(seen.user.id)!;
    expect([age, at > row!.at]).toEqual([age, isRecorded]);
  }
  await revokeAll();
}, 120_000);

test("doctor finds and restores lost roles, rights and passwords, and drops roles that belong to no user", async () => {
  const database = await databaseOf();
  const [lost, weak, changed] = [await made("lost"), await made("weak"), await made("changed")];
  const stray = { role: `bt_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`, password: "stray" };
  await createSqlUserRole(replicas.clusterUrl, { ...database, database: database.name }, stray);
  await onReplicas((sql) =>
    sql.unsafe(`
      drop role ${lost.user.role}; revoke ${database.role} from ${weak.user.role};
      alter role ${weak.user.role} connection limit -1; alter role ${changed.user.role} password 'mine'`),
  );
  const found = await findings(database);
  expect(found.map(({ message }) => message.slice(database.name.length + 2)).sort()).toEqual(
    [
      'the role of its SQL user "lost" does not exist',
      'its SQL user "weak" lacks the rights or the limits of a SQL user',
      'the server does not accept the password of its SQL user "changed"',
      `the role ${stray.role} has the rights of a SQL user and is none of them`,
    ].sort(),
  );
  for (const { fix } of found) await fix!();
  expect(await findings(database)).toEqual([]);
  expect(await rolesOnServer([stray.role])).toEqual([]);
  for (const { url } of [lost, weak, changed]) {
    await using session = connectAs(url);
    expect(await outcome(session.db`select from _sync_meta`)).toBe("done");
  }

  // A server that lost all roles of the database.
  await onReplicas(
    async (sql) => {
      await sql.unsafe(`drop owned by ${database.role}; drop role ${database.role}, ${lost.user.role}`);
    },
    databaseUrl(replicas.superuserUrl, database.name),
  );
  for (const { fix } of await findings(database)) await fix!();
  expect(await findings(database)).toEqual([]);
  for (const { url } of [lost, weak]) {
    await using session = connectAs(url);
    expect(await outcome(session.db`select from _sync_meta`)).toBe("done");
  }
  await revokeAll();
}, 120_000);

test("in a writable database a user writes, and the database's own role reads what it made after it is revoked", async () => {
  const database = await databaseOf();
  const own = await databaseCredentials(as, database);
  const early = await made("early");
  await setDatabaseWritable(as, database, true);
  const late = await made("late");
  for (const { url, user } of [early, late]) {
    await using session = connectAs(url);
    expect(await outcome(session.db.unsafe(`create table of_${user.name} as select 1 as id`))).toBe("done");
  }
  expect(await findings(await databaseOf())).toEqual([]);
  const current = await databaseOf();
  for (const { user } of [early, late]) await revokeSqlUser(as, current, user);
  await using session = connectAs(own.url);
  expect(await session.db`select e.id from of_early as e join of_late as l using (id)`).toEqual([{ id: 1 }]);
  expect(await outcome(session.db.unsafe("drop table of_early"))).toBe("42501");
  for (const { user } of [early, late]) {
    await session.db.unsafe(`set role ${user.role}_revoked; drop table of_${user.name}; reset role`);
  }
  const [entry] = await as.db<{ details: unknown }[]>`
    select details from audit_log where action = 'sql_user.revoked' and details ->> 'name' = 'early'`;
  expect(entry!.details).toMatchObject({ disowned: expect.stringContaining("table public.of_early") });
  await setDatabaseWritable(as, current, false);
  const reader = await made("reader");
  await using afterwards = connectAs(reader.url);
  expect(await outcome(afterwards.db`create table mine (id int)`)).toBe("25006");
  await revokeAll();
}, 90_000);

test("who may write with SQL writes keeps that when the database is made writable and read-only again, and nobody else has it", async () => {
  const [writer, reader] = [await made("writer"), await made("reader")];
  await as.db`update bases set sql_writes = true where id = ${base.id}`;
  await as.db`
    update sql_users set writes = jsonb_build_object(${base.id}::text, '{"tables":["tblA"],"mode":"at_commit"}'::jsonb)
    where id = ${writer.user.id}`;
  const readOnly = () =>
    Promise.all(
      [writer, reader].map(async ({ url }) => {
        await using session = connectAs(url);
        return (await session.db`show default_transaction_read_only`)[0]!.default_transaction_read_only;
      }),
    );
  await setDatabaseWritable(as, await databaseOf(), true);
  expect(await readOnly()).toEqual(["off", "off"]);
  await setDatabaseWritable(as, await databaseOf(), false);
  expect(await readOnly()).toEqual(["off", "on"]);
  await as.db`update bases set sql_writes = false where id = ${base.id}`;
  await revokeAll();
}, 60_000);

test("what a user may write to a base is kept when another request sets what it may write to others", async () => {
  const { user } = await made("writer");
  const writes: SqlUserWrites = { tables: ["tblA"], mode: "at_commit" };
  const saved = await as.db.begin(async (tx) => {
    // Each as a request that read the user before any other.
    await saveSqlUserWrites(tx, user, "bas_one", writes);
    await saveSqlUserWrites(tx, user, "bas_two", writes);
    return saveSqlUserWrites(tx, user, "bas_one", { ...writes, tables: [] });
  });
  expect(saved.writes).toEqual({ bas_two: writes });
  await revokeAll();
}, 60_000);

test("the API lists, creates, shows, rotates and revokes; a name is unique, and their number limited", async () => {
  const path = `/api/v1/bases/${base.id}/sql-users`;
  const ask = (method: string, suffix = "", body?: object) =>
    call(method, `${path}${suffix}`, body === undefined ? { token } : { token, body });
  const created = await ask("POST", "", { name: "  Meta\u0000base " });
  expect(created).toMatchObject({
    status: 201,
    body: { sql_user: { name: "Metabase", created_by: "test", last_seen_at: null } },
  });
  const { sql_user: user, credentials } = created.body;
  expect(credentials.user).toBe(user.user);
  expect((await ask("GET")).body).toEqual([user]);
  expect(JSON.stringify((await ask("GET")).body)).not.toContain(credentials.password);
  expect((await ask("GET", `/${user.id}/credentials`)).body).toEqual(credentials);
  const rotated = await ask("POST", `/${user.id}/rotate`, {});
  expect([rotated.status, rotated.body.password === credentials.password]).toEqual([200, false]);
  expect(await canLogIn(rotated.body.url)).toBe(true);

  const taken = await ask("POST", "", { name: "METABASE" });
  expect([taken.status, taken.body.error.code]).toEqual([409, "already_exists"]);
  for (const name of [" ", "\u0000", "x".repeat(61)]) {
    expect([name, (await ask("POST", "", { name })).status]).toEqual([name, 422]);
  }
  const few = { ...as, config: { ...as.config, databaseSqlUsers: 1 } };
  await expect(createSqlUser(few, await databaseOf(), "second")).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("DATABASE_SQL_USERS"),
  });
  const external = { ...(await databaseOf()), clusterId: null };
  await expect(createSqlUser(as, external, "second")).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("on your server"),
  });
  expect((await ask("DELETE", "/squ_00000000000000000000")).status).toBe(404);
  expect((await ask("DELETE", `/${user.id}`)).status).toBe(204);
  expect((await ask("GET", `/${user.id}/credentials`)).status).toBe(404);
  expect((await ask("GET")).body).toEqual([]);
}, 60_000);

test("the customers' command line lists, creates, shows, rotates and revokes users by their names", async () => {
  await revokeAll();
  const app = consoleApp(control.ctx);
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.handle(request) });
  vi.stubEnv("BASETIDE_URL", `http://127.0.0.1:${server.port}`);
  vi.stubEnv("BASETIDE_TOKEN", token);
  const printed: string[] = [];
  const spies = [
    vi.spyOn(console, "log").mockImplementation((text: unknown) => void printed.push(String(text))),
    vi.spyOn(console, "error").mockImplementation((text: unknown) => void printed.push(String(text))),
  ];
  const cli = async (...words: string[]) => {
    printed.length = 0;
    process.exitCode = 0;
    await runCli(["sql-users", ...words]);
    const code = process.exitCode;
    process.exitCode = 0;
    return { text: printed.join("\n"), code: Number(code) };
  };
  try {
    const made = JSON.parse((await cli("create", base.id, "Metabase", "--json")).text);
    expect(made.sql_user.name).toBe("Metabase");
    expect(await canLogIn(made.credentials.url)).toBe(true);
    const listed = await cli("list", base.id);
    expect(listed.text).toMatch(/name +user +created_by[\s\S]*Metabase +bt_\w+ /);
    expect(listed.text).not.toContain(made.credentials.password);
    const shown = JSON.parse((await cli("credentials", base.id, "metabase", "--json")).text);
    expect(shown).toEqual(made.credentials);
    const rotated = JSON.parse((await cli("rotate", base.id, "Metabase", "--json")).text);
    expect([await canLogIn(rotated.url), await canLogIn(made.credentials.url)]).toEqual([true, false]);
    expect((await cli("rotate", base.id, "Lina")).text).toContain("The database has: Metabase");
    const refused = await cli("revoke", base.id, "Metabase");
    expect([refused.code, await canLogIn(rotated.url)]).toEqual([130, true]);
    expect((await cli("revoke", base.id, "Metabase", "--yes")).text).toBe("Metabase is revoked");
    expect(await canLogIn(rotated.url)).toBe(false);
  } finally {
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
    await server.stop(true);
  }
});

test("the operator sees who has users and when they were connected, without passwords", async () => {
  const { user, url } = await made("Looker");
  await recordSqlUsersSeen(as.db, [user.role]);
  const { password } = new URL(url);
  const ask = asker(consoleApp(control.ctx, authByHeader()));
  const account = { ...(await control.addAccount("op@example.org")), isOperator: true };
  const { text, status } = await ask(`/operator/bases/${base.id}`, { account });
  expect(status).toBe(200);
  expect(text).toMatch(new RegExp(`Looker[\\s\\S]*${user.role}[\\s\\S]*ada@example.org`));
  expect(text).not.toContain(password);
  const [row] = await listAllSqlUsers(as.db, user.databaseId);
  expect(row).toMatchObject({ name: "Looker", email: "ada@example.org", lastSeenAt: expect.any(Date) });
  expect(await listAllSqlUsers(as.db)).toContainEqual(row);
  const owner = (await listAccounts(as.db)).find(({ id }) => id === accountId);
  expect(owner!.sqlUsers).toBe((await listAllSqlUsers(as.db)).length);
});

test("a table that is locked names the SQL user that locks it", async () => {
  const { user } = await made("Nightly export");
  const named = (text: string) => nameSqlUsers(as.db, user.databaseId, text);
  expect(await named(`locked by ${user.role} (psql, pid 7)`)).toBe(
    'locked by the SQL user "Nightly export" (psql, pid 7)',
  );
  expect(await named("locked by autovacuum worker (pid 7)")).toBe("locked by autovacuum worker (pid 7)");
});

test("two creations at once cannot exceed the maximum, and a role that cannot be created leaves no row", async () => {
  await revokeAll();
  const database = await databaseOf();
  const few = { ...as, config: { ...as.config, databaseSqlUsers: 1 } };
  const answers = await Promise.all(
    ["one", "two"].map((name) => outcome(createSqlUser(few, database, name))),
  );
  expect(answers.sort()).toEqual(["conflict", "done"]);
  await revokeAll();
  const unknown = { ...database, role: "bt_0000000000000000" };
  expect(await outcome(createSqlUser(as, unknown, "none"))).not.toBe("done");
  expect(await listSqlUsers(as.db, database.id)).toEqual([]);
  const left = await onReplicas(
    (
      admin,
    ) => admin`select from pg_auth_members where roleid = to_regrole(${database.role}) and not admin_option
      and member <> current_user::regrole`,
  );
  expect(left).toEqual([]);
}, 60_000);

test("dropping a database removes its users", async () => {
  const second = await connected("appTwo");
  const database = await databaseOf(second);
  const user = await createSqlUser(as, database, "Metabase");
  expect(await rolesOnServer([user.role])).toEqual([user.role]);
  await deleteBase(control.ctx, second);
  expect(await rolesOnServer([user.role, database.role])).toEqual([]);
  expect(await listSqlUsers(as.db, database.id)).toEqual([]);
}, 60_000);
