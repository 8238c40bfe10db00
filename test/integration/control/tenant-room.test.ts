/** The limits on databases and connections of an account and a cluster (S9), and the roles that the service uses. */
import postgres from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import {
  createHostedDatabase,
  ensureDefaultCluster,
  getDatabase,
  inspectCluster,
  setConnectionLimit,
} from "../../../core/control/placement";
import { databaseUrl, dropDatabase, provisionDatabase } from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { type TestControl, testControl } from "../../support/control-support";
import { replicaServer } from "../../support/replica-server";

async function control(replicaUrl?: string): Promise<TestControl> {
  const made = await testControl(replicaUrl);
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

test("an account has at most its number of databases, also when it requests several at once", async () => {
  await using server = await replicaServer();
  await using made = await testControl(server.clusterUrl);
  const { ctx } = made;
  const config = { ...ctx.config, accountDatabases: 2 };
  const { id } = await made.addAccount("many@example.com");
  const asked = await Promise.allSettled(
    [1, 2, 3, 4].map(() => createHostedDatabase({ ...ctx, config }, id, "public")),
  );
  const refused = asked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  expect(refused).toHaveLength(2);
  for (const error of refused) {
    expect(error).toMatchObject({ code: "conflict", message: expect.stringContaining("2 hosted databases") });
  }
  const [first] = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(await setConnectionLimit(ctx, first!, 3)).toMatchObject({ connections: 3 });
  const [role] = await asAdmin(
    (admin) => admin`select rolconnlimit as is from pg_roles where rolname = ${first!.role}`,
    server.superuserUrl,
  );
  expect(role).toEqual({ is: 3 });
  expect(await getDatabase(ctx.db, first!.id)).toMatchObject({ connections: 3 });
});

test("a cluster whose connections are all assigned gets no more databases, and the error names it", async () => {
  // 30, minus 6 for the service and 3 for the superuser: two databases of ten.
  await using server = await replicaServer({ max_connections: "30" });
  await using made = await testControl(server.clusterUrl);
  const ctx = { ...made.ctx, config: { ...made.ctx.config, connectionOvercommit: 1 } };
  const { id } = await made.addAccount("full@example.com");
  for (let index = 0; index < 2; index++) await createHostedDatabase(ctx, id, "public");
  await expect(createHostedDatabase(ctx, id, "public")).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("full: default"),
  });
});

test("a server on which a reader can leave transactions behind that outlive its sessions is reported", async () => {
  await using server = await replicaServer({ max_prepared_transactions: "5" });
  const made = await provisionDatabase(server.clusterUrl);
  const url = new URL(databaseUrl(server.clusterUrl, made.database));
  [url.username, url.password] = [made.role, made.password];
  const reader = postgres(url.href, { max: 1, onnotice: () => {} });
  await reader.unsafe("begin; select count(*) from pg_class; prepare transaction 'left behind'");
  await reader.end();
  const left = await asAdmin((admin) => admin`select gid from pg_prepared_xacts`, server.superuserUrl);
  expect(left).toHaveLength(1);
  expect((await inspectCluster(server.clusterUrl)).results).toContainEqual(
    expect.objectContaining({ severity: "warning", remedy: "Set max_prepared_transactions to 0" }),
  );
  await asAdmin(
    (admin) => admin.unsafe("rollback prepared 'left behind'"),
    databaseUrl(server.superuserUrl, made.database),
  );
});

test("without REPLICA_URL, the control plane's role is checked for the right to create replicas, and the error has the remedy", async () => {
  const { ctx } = await control();
  await ctx.db`delete from clusters`;
  const alone = { ...ctx, config: { ...ctx.config, replicaUrl: undefined } };
  await expect(ensureDefaultCluster(alone)).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringMatching(/REPLICA_URL.*server prepare/),
  });
});

test("the service's roles have the rights that they need and no more, and the tests use them", async () => {
  const names = [inject("controlUrl"), inject("clusterUrl")].map((url) => new URL(url).username);
  const rows = await asAdmin(
    (admin) => admin`
      select rolname as role, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls
      from pg_roles where rolname = any (${names}) order by array_position(${names}::text[], rolname::text)`,
  );
  const none = {
    rolsuper: false,
    rolcreatedb: false,
    rolcreaterole: false,
    rolreplication: false,
    rolbypassrls: false,
  };
  expect(rows).toEqual([
    { role: names[0], ...none },
    { role: names[1], ...none, rolcreatedb: true, rolcreaterole: true },
  ]);
});

test("a database is dropped with its customer's sessions; while a superuser is connected, an error says so", async () => {
  const adminUrl = inject("clusterUrl");
  const { database, role, password } = await provisionDatabase(adminUrl);
  const urlOf = (server: string, login = {}) =>
    Object.assign(new URL(databaseUrl(server, database)), login).href;
  const connect = async (url: string) => {
    const sql = postgres(url, { max: 1, onnotice: () => {}, connection: { application_name: "stays" } });
    onTestFinished(() => sql.end({ timeout: 1 }).catch(() => {}));
    await sql`select 1`;
    return sql;
  };
  await connect(urlOf(adminUrl, { username: role, password }));
  const superuser = await connect(urlOf(inject("postgresUrl")));
  await expect(dropDatabase(adminUrl, database, role)).rejects.toMatchObject({ code: "replica_busy" });
  await superuser.end();
  await dropDatabase(adminUrl, database, role);
  const left = await asAdmin((admin) => admin`select from pg_database where datname = ${database}`);
  expect(left).toEqual([]);
});
