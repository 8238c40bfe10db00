/**
 * A customer's own database, with variations of its server, role and schema: it works there, or the reason is reported.
 */
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { inspectDestination } from "../../../core/control/placement";
import { createAuthority } from "../../../core/http";
import { installReplica } from "../../../core/replica";
import { managementApi } from "../../support/control-support";
import { HAS_PGBOUNCER, pgBouncer } from "../../support/servers/pgbouncer";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { tlsRelay } from "../../support/servers/tls-relay";

vi.setConfig({ testTimeout: 90_000 });

const ALIAS = "postgres.abcdefghij";

const api = managementApi();
let server: PostgresServer;
beforeAll(async () => {
  server = await postgresServer({ version: "18" });
}, 60_000);
afterAll(() => server?.[Symbol.asyncDispose]());

/** A database and the role that owns it, without any other rights on the server. */
async function customer(made = "", settings: string[] = []) {
  const name = `own_${crypto.randomUUID().slice(0, 8)}`;
  await server.role(name);
  await server.run([`create database ${name} owner ${name} ${made}`]);
  await server.run(settings, name);
  return { name, url: server.as(name, name) };
}

async function connect(url: string, schema?: string) {
  const { token, id: accountId } = await api.newAccount();
  const { status, body } = await api.connect(token, { destination: { kind: "external", url, schema } });
  const credentials = async () =>
    (await api.call("GET", `/api/v1/bases/${body.id}/credentials`, { token })).body;
  return { status, body, credentials, accountId, message: String(body.error?.message) };
}

async function inside<T>(name: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(server.as("postgres", name), { max: 1, onnotice: () => {} });
  return work(sql).finally(() => sql.end({ timeout: 1 }));
}

test("a database with another encoding, a read-only one and a role without CONNECT are refused with the remedy", async () => {
  const latin = await customer("template template0 encoding 'LATIN1' locale 'C'");
  expect((await connect(latin.url)).message).toMatch(/has the encoding LATIN1.*encoding 'UTF8'/);
  const readOnly = await customer();
  await server.run([`alter database ${readOnly.name} set default_transaction_read_only = on`]);
  expect((await connect(readOnly.url)).message).toContain(
    `alter database "${readOnly.name}" set default_transaction_read_only = off`,
  );
  await server.run([`alter database ${readOnly.name} set default_transaction_read_only = off`]);
  expect((await connect(readOnly.url)).status).toBe(201);
  const unchecked = await customer();
  await server.run([`alter role ${unchecked.name} set session_replication_role = replica`]);
  expect((await connect(unchecked.url)).message).toContain("set session_replication_role = origin");
  const closed = await customer();
  await server.run([
    `revoke connect on database ${closed.name} from public`,
    "create role stranger login password 'pw'",
  ]);
  const { status, message } = await connect(server.as("stranger", closed.name));
  expect([status, message]).toEqual([
    422,
    expect.stringContaining(`grant connect on database "${closed.name}" to "stranger"`),
  ]);
});

test("functions that a provider denies are not used, and required ones are named when they are denied", async () => {
  const denying = await customer("", [
    "revoke execute on function pg_control_system() from public",
    "revoke execute on function pg_postmaster_start_time() from public",
  ]);
  expect((await connect(denying.url, "copy")).status).toBe(201);
  const strict = await customer("", ["revoke select on pg_catalog.pg_roles from public"]);
  const { status, message } = await connect(strict.url);
  expect([status, message]).toEqual([422, expect.stringContaining("permission denied for view pg_roles")]);
  expect(message).not.toContain("grant connect");
});

test("the control plane is refused as a destination, also where it reveals less of itself", async () => {
  const own = api.control.ctx.config.databaseUrl!;
  await api.control.ctx.db`select 1`;
  const superuser = postgres(
    Object.assign(new URL(api.control.serverUrl), { pathname: new URL(own).pathname }).href,
    { max: 1 },
  );
  try {
    await superuser`revoke execute on function pg_control_system() from public`;
    expect((await connect(own)).message).toContain("belongs to Basetide");
  } finally {
    await superuser`grant execute on function pg_control_system() to public`;
    await superuser.end();
  }
});

test("behind a relay that maps the role to another name, rights are the server role's and credentials the relay's", async () => {
  const own = await customer();
  const certificate = createAuthority("A test's").issue(["localhost", "127.0.0.1"]);
  await using relay = await tlsRelay(server, { certificate, aliases: { [ALIAS]: own.name } });
  const made = await connect(relay.over(own.url), "copy");
  expect([made.status, made.message]).toEqual([201, "undefined"]);
  expect(await made.credentials()).toMatchObject({ user: ALIAS });
  const [state] = await inside(
    own.name,
    (sql) => sql`
    select reader, pg_get_userbyid(nspowner) as owner from copy_swap._state, pg_namespace where nspname = 'copy'`,
  );
  expect(state).toEqual({ reader: own.name, owner: own.name });
});

test.skipIf(!HAS_PGBOUNCER)("the same behind PgBouncer with user= in its list of databases", async () => {
  const own = await customer();
  await using pooler = await pgBouncer(server, {
    mode: "session",
    logins: [ALIAS],
    mapped: { theirs: { database: own.name, role: own.name } },
  });
  const made = await connect(pooler.over(server.as(ALIAS, "theirs")), "copy");
  expect([made.status, made.message]).toEqual([201, "undefined"]);
  const [state] = await inside(own.name, (sql) => sql`select reader from copy_swap._state`);
  expect(state).toEqual({ reader: own.name });
});

test("a customer's schema keeps its rights and its default privileges", async () => {
  const own = await customer("", ["grant create on schema public to public", "create role app_user"]);
  await server.run(
    [
      `set role ${own.name}; alter default privileges in schema public grant select on tables to app_user`,
      `set role ${own.name}; alter default privileges grant insert on tables to app_user`,
    ],
    own.name,
  );
  const rights = () =>
    inside(own.name, async (sql) => [
      await sql`select nspname, nspacl::text from pg_namespace where nspname !~ '_swap$|^pg_t' order by 1`,
      await sql`select defaclrole, defaclnamespace, defaclobjtype, defaclacl::text from pg_default_acl order by 1, 2, 3`,
    ]);
  const before = await rights();
  const { status, accountId } = await connect(own.url, "public");
  expect(status).toBe(201);
  expect(await rights()).toEqual(before);
  // They will be able to read the base's tables, as the report says.
  const destination = { kind: "external" as const, url: own.url, schema: "public2" };
  await server.run(
    [
      `set role ${own.name}; create schema public2; alter default privileges in schema public2 grant select on tables to app_user`,
    ],
    own.name,
  );
  const messages = (await inspectDestination(api.control.ctx, accountId, destination)).map(
    ({ message }) => message,
  );
  expect(messages).toContainEqual(expect.stringContaining("will let app_user read the base's tables"));
});

test("tables of other roles in the schema prevent neither the connection nor an upgrade", async () => {
  const own = await customer("", [
    "create table public.theirs (id int)",
    "create view public.shown as select 1 as one",
  ]);
  expect((await connect(own.url, "public")).status).toBe(201);
  await inside(own.name, async (sql) => {
    await sql`create table public.later (id int)`;
    await sql.unsafe(`comment on schema public_swap is '0123456789abcdef'`);
  });
  await installReplica(own.url, { schema: "public" });
  const [version] = await inside(
    own.name,
    (sql) => sql`
    select obj_description('public_swap'::regnamespace) as version, (select relacl from pg_class where relname = 'later') as rights`,
  );
  expect(version).toEqual({ version: expect.stringMatching(/^\d+ [0-9a-f]{16}$/), rights: null });
});
