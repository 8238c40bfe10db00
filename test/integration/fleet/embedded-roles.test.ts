/**
 * A server whose databases a superuser created, as before the service had roles: they are given to those roles,
 * complete.
 */
import { expect, onTestFinished, test } from "vitest";
import { CLUSTER_ROLE, CONTROL_ROLE } from "../../../apps/up/postgres/embedded-postgres";
import { embeddedRoles } from "../../../apps/up/postgres/embedded-roles";
import { migrateControl, prepareControl } from "../../../core/control/setup";
import { createLogger } from "../../../core/log";
import {
  claimEpoch,
  databaseUrl,
  dropDatabase,
  ensureInstalled,
  installReplica,
  openReplica,
  provisionDatabase,
  restoreLimits,
} from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { replicaServer } from "../../support/replica-server";

test("objects of a superuser are taken over, twice with the same result, and keep working", async () => {
  await using server = await replicaServer();
  const { superuserUrl } = server;
  await asAdmin((admin) => admin`create database basetide`, superuserUrl);
  await migrateControl(databaseUrl(superuserUrl, "basetide"), createLogger("error", "test"));
  const { database, role } = await provisionDatabase(superuserUrl, "old");
  await installReplica(databaseUrl(superuserUrl, database), { schema: "public", role });

  const urls = await embeddedRoles(superuserUrl, "basetide");
  expect(await embeddedRoles(superuserUrl, "basetide")).toEqual(urls);

  const owners = await asAdmin(
    (admin) => admin`
      select datname as name, datdba::regrole::text as owner, has_database_privilege('public', oid, 'connect') as is_open
      from pg_database where datname in ('basetide', ${database}) order by datname = 'basetide' desc`,
    superuserUrl,
  );
  expect(owners).toEqual([
    { name: "basetide", owner: CONTROL_ROLE, is_open: false },
    { name: database, owner: CLUSTER_ROLE, is_open: false },
  ]);
  await asAdmin(async (control) => {
    await control`insert into installation (id) values ('mine')`;
    await control`alter table accounts add column mine int`;
  }, urls.controlUrl);
  const ownUrl = databaseUrl(urls.clusterUrl, database);
  const replica = openReplica({ url: ownUrl, schema: "public" });
  onTestFinished(() => replica.close());
  await ensureInstalled(replica, { url: ownUrl, schema: "public", role });
  expect(await claimEpoch(replica)).toBe(1);
  await restoreLimits(urls.clusterUrl, { role });
  await replica.close();
  await dropDatabase(urls.clusterUrl, database, role);
});

test("a database of another program is not taken over", async () => {
  await using server = await replicaServer();
  const { superuserUrl } = server;
  await asAdmin((admin) => admin`create database wiki`, superuserUrl);
  await asAdmin((admin) => admin`create table pages (id int)`, databaseUrl(superuserUrl, "wiki"));
  const login = { role: "some_control", password: "pw", database: "wiki" };
  await expect(prepareControl(superuserUrl, login)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("public.pages"),
  });
  const [left] = await asAdmin(
    (admin) => admin`
      select has_database_privilege('public', 'wiki', 'connect') as open, to_regrole('some_control') as role`,
    superuserUrl,
  );
  expect(left).toEqual({ open: true, role: null });
  await asAdmin((admin) => admin`drop table pages`, databaseUrl(superuserUrl, "wiki"));
  await prepareControl(superuserUrl, login);
});
