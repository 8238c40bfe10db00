/**
 * A server that other programs use too: foreign objects stay unchanged, from before the first base to after the last. A
 * canary (a role and a database of another program) is queried continuously, and all foreign rights are compared.
 */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { deleteBase, getBase, replicaTarget } from "../../../core/control/bases";
import {
  clusterAdminUrl,
  getDatabase,
  inspectCluster,
  listClusters,
  rotateCredentials,
  setDatabaseWritable,
} from "../../../core/control/placement";
import { recommendedNaptime } from "../../../core/control/placement/cluster-check";
import {
  applyLinkViews,
  applySettings,
  claimEpoch,
  openReplica,
  prepareCluster,
} from "../../../core/replica";
import { caller, connectBase, testControl } from "../../support/control-support";
import { until } from "../../support/poll";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { shopIn } from "../../support/shop";

/** Of the service and its customers. */
const OURS = /^(bt_|basetide)/;

const OTHERS_CUSTOMER = "bt_0123456789abcdef";

let server: PostgresServer;
beforeAll(async () => {
  server = await postgresServer({ version: "18" });
  await server.role("crm_owner");
  await server.role("crm_app");
  await server.role("grafana");
  // Another installation of Basetide, with a customer of its own.
  const other = await server.role("basetide_other", "createdb createrole");
  await ask(other, (sql) =>
    sql.unsafe(`create role ${OTHERS_CUSTOMER}; grant ${OTHERS_CUSTOMER} to current_user`),
  );
  await server.run(["create database crm owner crm_owner", "create database wiki"]);
  await server.run(
    [
      // As on servers that were created before version 15.
      "grant create on schema public to public",
      "create table public.orders (id int primary key)",
      "grant select, insert on public.orders to crm_app",
      "create schema reports authorization crm_owner",
    ],
    "crm",
  );
}, 120_000);
afterAll(() => server?.[Symbol.asyncDispose]());

async function ask<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** What another program does there, with the rights of any role. @throws what it could not do */
async function canary(): Promise<void> {
  await ask(server.as("crm_app", "crm"), async (sql) => {
    await sql`drop table if exists public.migrated`;
    await sql`create table public.migrated (id int)`;
    await sql`create temporary table mine (id int)`;
    await sql`insert into public.orders select coalesce(max(id), 0) + 1 from public.orders`;
    await sql`do $$ begin perform pg_advisory_xact_lock(7); end $$`;
    await sql`drop table public.migrated`;
  });
  for (const database of ["crm", "wiki", "postgres"]) {
    await ask(server.as("grafana", database), (sql) => sql`create temporary table mine (id int)`);
  }
}

/** All rights and settings of others, on the server and in the database `crm`. */
async function othersRights(): Promise<unknown> {
  const onServer = await ask(server.url, async (sql) => ({
    databases: await sql`
      select d.datname, d.datallowconn, d.datistemplate, d.datconnlimit, pg_get_userbyid(d.datdba) as owner,
        array(select format('%s=%s', case a.grantee when 0 then 'public' else pg_get_userbyid(a.grantee) end,
            a.privilege_type)
          from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as a
          where pg_get_userbyid(a.grantee) !~ ${OURS.source} order by 1) as rights
      from pg_database as d where d.datname !~ ${OURS.source} order by 1`,
    roles: await sql`
      select r.*, array(select pg_get_userbyid(m.roleid) from pg_auth_members as m where m.member = r.oid
          and pg_get_userbyid(m.roleid) !~ ${OURS.source} order by 1) as of
      from pg_roles as r where r.rolname !~ ${OURS.source} order by r.rolname`,
    settings: await sql`
      select d.datname, r.rolname, s.setconfig from pg_db_role_setting as s
        left join pg_database as d on d.oid = s.setdatabase left join pg_roles as r on r.oid = s.setrole
      where coalesce(d.datname, '') !~ ${OURS.source} and coalesce(r.rolname, '') !~ ${OURS.source} order by 1, 2`,
  }));
  const inside = await Promise.all(
    ["crm", "postgres", "template1"].map((database) =>
      ask(server.as("postgres", database), async (sql) => [
        await sql`
          select nspname, nspacl::text, pg_get_userbyid(nspowner) as owner from pg_namespace
          where nspname !~ '^(pg_t|inventory)' order by 1`,
        await sql`
          select c.oid::regclass::text as name, c.relacl::text, c.reloptions from pg_class as c
          where c.relnamespace not in (select oid from pg_namespace where nspname ~ '^(pg_t|inventory)')
            and c.relname !~ '^(migrated|mine)' order by 1`,
        await sql`select oid::regprocedure::text as name, proacl::text from pg_proc
          where proacl is not null and pronamespace::regnamespace::text !~ '^inventory' order by 1`,
        await sql`select lanname, lanacl::text from pg_language order by 1`,
        await sql`select defaclobjtype, defaclnamespace::regnamespace::text, defaclacl::text from pg_default_acl order by 1, 2, 3`,
      ]),
    ),
  );
  // Rights that only the service's role got there are not granted to it.
  return JSON.parse(
    JSON.stringify([onServer, inside]).replaceAll(/,?basetide_admin=[a-zA-Z*]+\/postgres/g, ""),
  );
}

describe.each(["a superuser", "an admin who may create databases and roles"])("the service is %s", (kind) => {
  test("other programs and their rights are unaffected before, during and after a base is hosted there", {
    timeout: 180_000,
  }, async () => {
    const isSuper = kind === "a superuser";
    const before = await othersRights();
    await canary();
    let isOver = false;
    let rounds = 0;
    const watched = (async () => {
      while (!isOver) {
        await canary();
        rounds += 1;
      }
    })();
    const login = { role: "basetide_admin", password: "pw", database: "postgres" };
    if (!isSuper) await prepareCluster(server.url, login);
    {
      await using control = await testControl(isSuper ? server.url : server.as(login.role));
      const { ctx } = control;
      const { token } = await control.addAccount("person@example.com");
      const call = caller(consoleApp(ctx));
      const hosted = await connectBase(call, token);
      const external = await connectBase(call, token, {
        base_id: "appTwo",
        destination: { kind: "external", url: server.as("crm_owner", "crm"), schema: "inventory" },
      });
      expect([hosted.status, external.status]).toEqual([201, 201]);
      expect(await othersRights()).toEqual(before);
      for (const { body } of [hosted, external]) {
        const base = await getBase(ctx.db, body.id);
        const { url, schema, role = "crm_owner" } = await replicaTarget(ctx, base);
        const replica = openReplica({ url, schema });
        await using _closed = { [Symbol.asyncDispose]: () => replica.close() };
        const epoch = await claimEpoch(replica);
        await applySettings(replica, epoch, { history: true, notify: true });
        await applyLinkViews(replica, epoch, true);
        const readerUrl = server.as("postgres");
        const made = {
          replica,
          epoch,
          readerUrl,
          ownerUrl: readerUrl,
          role,
          [Symbol.asyncDispose]: async () => {},
        };
        const shop = await shopIn(made, replica.sql as unknown as postgres.Sql, { Name: "text" });
        await shop.become({ Name: "text", Links: "links" });
      }
      const database = await getDatabase(ctx.db, hosted.body.database.id);
      await rotateCredentials(ctx, database);
      await setDatabaseWritable(ctx, database, true);
      const [cluster] = await listClusters(ctx.db);
      const problems = (await inspectCluster(await clusterAdminUrl(ctx, cluster!.id))).results;
      expect(problems.filter(({ severity }) => severity === "problem")).toEqual([]);
      // Reported, with the statement to run; and our own database is locked down without it.
      for (const name of ["crm", "wiki", "postgres"]) {
        expect(problems).toContainEqual({
          check: "cluster",
          severity: "warning",
          message: `Every role, including those of customers, may connect to the database ${name}`,
          remedy: expect.stringContaining(`revoke connect, temporary on database "${name}" from public`),
        });
      }
      await expect(ask(server.as("grafana", database.name), (sql) => sql`select 1`)).rejects.toMatchObject({
        code: "42501",
      });
      expect(await othersRights()).toEqual(before);
      for (const { body } of [hosted, external]) await deleteBase(ctx, await getBase(ctx.db, body.id));
    }
    isOver = true;
    await watched;
    await canary();
    if (!isSuper) {
      const [row] = await ask(
        server.url,
        (sql) => sql`select pg_has_role(${login.role}, ${OTHERS_CUSTOMER}, 'member') as is_ours`,
      );
      expect(row).toEqual({ is_ours: false });
    }
    expect(rounds).toBeGreaterThan(2);
    expect(await othersRights()).toEqual(before);
  });
});

test("an operator hears of autovacuum's visits to many databases", async () => {
  const setNaptime = async (value: string) => {
    await server.run([`alter system set autovacuum_naptime = '${value}'`, "select pg_reload_conf()"]);
    await until(
      async () => {
        const [row] = await ask(server.url, (sql) => sql`show autovacuum_naptime`);
        return row!.autovacuum_naptime === value;
      },
      { what: `autovacuum_naptime is ${value}` },
    );
  };
  const visits = async () =>
    (await inspectCluster(server.url)).results.filter(({ message }) =>
      message.startsWith("Autovacuum visits"),
    );
  expect(await visits()).toEqual([]);
  await setNaptime("1s");
  expect(await visits()).toEqual([
    {
      check: "cluster",
      severity: "warning",
      message: expect.stringMatching(
        /^Autovacuum visits \d databases every 1 s, which takes about \d+ ms of CPU a second$/,
      ),
      remedy: expect.stringContaining("set autovacuum_naptime to 5min"),
    },
  ]);
  await setNaptime("1min");
  expect([1, 300, 301, 1000].map(recommendedNaptime)).toEqual(["5min", "5min", "6min", "17min"]);
}, 30_000);
