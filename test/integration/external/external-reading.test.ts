/** Who reads a customer's own database in the console, and with which role: the URL's own may do more than read. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Account, Role } from "../../../core/control/accounts";
import { getDatabase, inspectKnown } from "../../../core/control/placement";
import { asker, authByHeader } from "../../support/console";
import { connectAs, managementApi } from "../../support/control-support";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";

vi.setConfig({ testTimeout: 90_000 });

const api = managementApi();
let servers: PostgresServer[];
let server: PostgresServer;
beforeAll(async () => {
  servers = await Promise.all(POSTGRES_VERSIONS.map((version) => postgresServer({ version })));
  server = servers.at(-1)!;
}, 120_000);
afterAll(() => Promise.all(servers.map((one) => one[Symbol.asyncDispose]())));

/** A database and the role that owns it, which has `rights` besides. */
async function customer(rights = "", on = server) {
  const name = `own_${crypto.randomUUID().slice(0, 8)}`;
  await on.role(name, rights);
  await on.run([`create database ${name} owner ${name}`]);
  return { name, url: on.as(name, name) };
}

async function connected(url: string, schema = "copy") {
  const account = await api.newAccount();
  const { status, body } = await api.connect(account.token, {
    destination: { kind: "external", url, schema },
  });
  expect([status, body.error?.message]).toEqual([201, undefined]);
  return { ...account, base: body as { id: string; database: { id: string } } };
}

/** What a member with that role gets from each way to read rows in the console. */
async function reads(
  of: { id: string; base: { id: string } },
  role: Role,
  sql = "select current_user as who",
) {
  const ask = asker(consoleApp(api.control.ctx, authByHeader()));
  const account = { id: of.id, email: "member@example.org", isOperator: false } as Account;
  const path = `/bases/${of.base.id}`;
  const editor = await ask(`${path}/sql`, { account, role, form: { sql } });
  const csv = await ask(`${path}/sql/csv`, { account, role, form: { sql } });
  const data = await ask(`${path}/data/_sync_meta`, { account, role });
  const download = await ask(`${path}/data/_sync_meta/download`, { account, role });
  const record = await ask(`${path}/data/_sync_meta/rec1`, { account, role });
  return {
    statuses: [editor, csv, data, download, record].map(({ status }) => status),
    text: `${editor.text} ${csv.text}`,
  };
}

test("without a reading URL only members who may see the URL read a customer's own database in the console", async () => {
  const { name, url } = await customer();
  await server.run(["create schema payroll", "create table payroll.salaries as select 999999 as boss"], name);
  await server.run(
    [`grant all on schema payroll to ${name}; grant all on payroll.salaries to ${name}`],
    name,
  );
  const of = await connected(url);
  const query = "select boss from payroll.salaries";
  const viewer = await reads(of, "viewer", query);
  expect(viewer.statuses).toEqual([403, 403, 403, 403, 403]);
  expect(viewer.text).toContain("reading URL");
  expect(viewer.text).not.toContain("999999");
  for (const role of ["editor", "owner"] as const) {
    const other = await reads(of, role, query);
    expect([role, other.statuses.slice(0, 2)]).toEqual([role, [200, 200]]);
    expect(other.text).toContain("999999");
  }
});

test("with a reading URL all members read with its role, which must be able to read the bases and nothing else", async () => {
  const { name, url } = await customer();
  const of = await connected(url);
  await server.run(["create schema payroll", "create table payroll.salaries as select 999999 as boss"], name);
  const path = `/api/v1/bases/${of.base.id}/credentials/reading-url`;
  const set = async (reading: string) => {
    const { status, body } = await api.call("PUT", path, { token: of.token, body: { url: reading } });
    return status === 204 ? "set" : `${status} ${body.error.message}`;
  };
  const reporting = `reporting_${name}`;
  const reading = await server.role(reporting, "", name);
  expect(await set(reading)).toMatch(/^422 .*cannot read the schema "copy".*grant usage on schema "copy"/);
  await server.run(
    [`grant usage on schema copy to ${reporting}; grant select on all tables in schema copy to ${reporting}`],
    name,
  );

  const tooMuch: [string, string, RegExp][] = [
    [`alter role ${reporting} superuser`, `alter role ${reporting} nosuperuser`, /is a superuser/],
    [
      `alter role ${reporting} bypassrls`,
      `alter role ${reporting} nobypassrls`,
      /bypasses row-level security/,
    ],
    [`alter role ${reporting} replication`, `alter role ${reporting} noreplication`, /may start replication/],
    [
      `alter role ${reporting} createdb`,
      `alter role ${reporting} nocreatedb`,
      /may create databases or roles/,
    ],
    [
      `grant pg_read_server_files to ${reporting}`,
      `revoke pg_read_server_files from ${reporting}`,
      /is a member of pg_read_server_files/,
    ],
    [
      `grant pg_signal_backend to ${reporting}`,
      `revoke pg_signal_backend from ${reporting}`,
      /is a member of pg_signal_backend/,
    ],
    [
      `create role app_${name} login; grant app_${name} to ${reporting}`,
      `drop role app_${name}`,
      new RegExp(`may end sessions of app_${name}`),
    ],
    [`grant ${name} to ${reporting}`, `revoke ${name} from ${reporting}`, /may change copy/],
    [
      `grant create on database ${name} to ${reporting}`,
      `revoke create on database ${name} from ${reporting}`,
      /may create schemas/,
    ],
    [
      `grant create on schema payroll to ${reporting}`,
      `revoke create on schema payroll from ${reporting}`,
      /may create objects in the schema payroll/,
    ],
    [
      `grant update on payroll.salaries to ${reporting}`,
      `revoke update on payroll.salaries from ${reporting}`,
      /may change payroll.salaries/,
    ],
    [
      `grant insert (boss) on payroll.salaries to ${reporting}`,
      `revoke insert (boss) on payroll.salaries from ${reporting}`,
      /may change payroll.salaries/,
    ],
    [
      `grant execute on function pg_read_file(text) to ${reporting}`,
      `revoke execute on function pg_read_file(text) from ${reporting}`,
      /may call pg_read_file\(text\)/,
    ],
    [
      `create role files_${name}; grant execute on function pg_reload_conf() to files_${name};
        grant files_${name} to ${reporting}`,
      `drop owned by files_${name}; drop role files_${name}`,
      /may call pg_reload_conf\(\)/,
    ],
    [
      `grant select on pg_authid to ${reporting}`,
      `revoke select on pg_authid from ${reporting}`,
      /may read pg_authid/,
    ],
    [
      `create foreign data wrapper any_${name}; create server other_${name} foreign data wrapper any_${name};
        grant usage on foreign server other_${name} to ${reporting}`,
      `drop foreign data wrapper any_${name} cascade`,
      new RegExp(`may use the foreign server other_${name}`),
    ],
  ];
  for (const [grant, revoke, reason] of tooMuch) {
    await server.run([grant], name);
    expect([grant, await set(reading)]).toEqual([grant, expect.stringMatching(reason)]);
    await server.run([revoke], name);
  }
  expect(await set(url)).toMatch(/^422/);
  expect(await set(server.as(reporting, "postgres"))).toMatch(/^422 .*names the database postgres/);
  expect((await reads(of, "viewer")).statuses[0]).toBe(403);
  expect(await set(reading)).toBe("set");

  const viewer = await reads(of, "viewer");
  expect(viewer.statuses.slice(0, 2)).toEqual([200, 200]);
  expect(viewer.text).toContain(reporting);
  expect((await reads(of, "owner")).text).toContain(reporting);
  expect((await reads(of, "viewer", "select boss from payroll.salaries")).text).not.toContain("999999");
  const log = await api.control.ctx.db`
    select action, details ->> 'user' as user from audit_log where subject = ${of.base.database.id}`;
  expect(log).toEqual([{ action: "database.reader_set", user: reporting }]);
  const [stored] = await api.control.ctx.db<{ encrypted: string }[]>`
    select encrypted_reader_url as encrypted from databases where id = ${of.base.database.id}`;
  expect(stored!.encrypted).not.toContain(reporting);

  expect((await api.call("DELETE", path, { token: of.token })).status).toBe(204);
  expect((await reads(of, "viewer")).statuses[0]).toBe(403);
  const hosted = await api.newAccount();
  const { body } = await api.connect(hosted.token);
  const own = await api.call("PUT", `/api/v1/bases/${body.id}/credentials/reading-url`, {
    token: hosted.token,
    body: { url: reading },
  });
  expect([own.status, own.body.error.code]).toEqual([409, "conflict"]);
});

test("a URL whose role has rights on the whole server is used only after an explicit yes, which is recorded", async () => {
  const wide: [string, string[]][] = [
    ["superuser", []],
    ["bypassrls", []],
    ["replication", []],
    ...["pg_read_server_files", "pg_execute_server_program", "pg_write_all_data", "pg_monitor"].map(
      (role): [string, string[]] => ["", [role]],
    ),
  ];
  for (const on of [servers[0]!, server]) {
    for (const [rights, roles] of wide) {
      const { name, url } = await customer(rights, on);
      for (const role of roles) await on.run([`grant ${role} to ${name}`]);
      const { token, id: accountId } = await api.newAccount();
      const destination = { kind: "external", url, schema: "copy" };
      const refused = await api.connect(token, { destination });
      const what = [on.version, rights, ...roles];
      expect([...what, refused.status, refused.body.error.code]).toEqual([
        ...what,
        422,
        "destination_invalid",
      ]);
      expect(refused.body.error.message).toMatch(/on the whole server.*accept_privileges/);
      const check = (more = {}) =>
        api.call("POST", "/api/v1/destinations/check", { token, body: { url, schema: "copy", ...more } });
      expect((await check()).body.is_usable).toBe(false);
      expect((await check({ accept_privileges: true })).body.is_usable).toBe(true);
      const accepted = await api.connect(token, { destination: { ...destination, accept_privileges: true } });
      expect([...what, accepted.status]).toEqual([...what, 201]);
      const database = await getDatabase(api.control.ctx.db, accepted.body.database.id);
      expect(database.acceptsPrivileges).toBe(true);
      const log = await api.control.ctx.db`
        select details ->> 'user' as user from audit_log
        where account_id = ${accountId} and action = 'database.privileges_accepted'`;
      expect(log).toEqual([{ user: name }]);
      const { checks } = await inspectKnown(api.control.ctx, database);
      expect(checks.find(({ check: of }) => of === "rights")?.severity).toBe("warning");
    }
  }
  // A role that may create databases and roles can do so on its own only, from version 16 on.
  const { url } = await customer("createdb createrole");
  expect((await connected(url)).base.id).toBeTruthy();
});

test("a second base in the same database keeps the role of the first: another user is refused, another password stored", async () => {
  const { name, url } = await customer();
  const of = await connected(url);
  const another = `another_${name}`;
  const second = await server.role(another, "", name);
  await server.run([`grant create on database ${name} to ${another}`]);
  const add = (of: { token: string }, with_: string) =>
    api.connect(of.token, {
      base_id: "appTwo",
      destination: { kind: "external", url: with_, schema: "two" },
    });
  const refused = await add(of, second);
  expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
  expect(refused.body.error.message).toContain(`synced as the user ${name}, and this URL names ${another}`);
  const credentials = async () =>
    (await api.call("GET", `/api/v1/bases/${of.base.id}/credentials`, { token: of.token })).body;
  expect((await credentials()).user).toBe(name);
  await using untouched = connectAs(server.as("postgres", name));
  expect(await untouched.db`select from pg_namespace where nspname = 'two'`).toEqual([]);

  await server.run([`alter role ${name} password 'changed'`]);
  const changed = Object.assign(new URL(url), { password: "changed" }).href;
  expect((await add(of, changed)).status).toBe(201);
  expect((await credentials()).password).toBe("changed");
});
