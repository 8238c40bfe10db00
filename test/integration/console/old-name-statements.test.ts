/** Statements that still use old names, on a server that counts statements: those of the base's own logins, and no others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Base, createBase, getBase } from "../../../core/control/bases";
import { createSqlUser, databaseCredentials, getDatabase } from "../../../core/control/placement";
import { sqlUserCredentials } from "../../../core/control/placement/sql-users";
import { databaseUrl } from "../../../core/replica";
import { oldNames } from "../../../core/sql-editor";
import { asAdmin } from "../../support/admin";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";
import { sourceTable } from "../../support/source-records";
import { syncTables } from "../../support/sync-tables";

const ACTOR = { kind: "user", name: "ada@example.org" } as const;

let replicas: ReplicaServer;
let control: TestControl;
/** Of two accounts, both with `work`, which was named `tasks`. */
let bases: [Base, Base];
let urls: { own: string; other: string; analyst: string };

beforeAll(async () => {
  replicas = await replicaServer({ shared_preload_libraries: "pg_stat_statements" });
  control = await testControl(replicas.clusterUrl);
  const { ctx } = control;
  const connected = async (email: string) => {
    const { id: accountId } = await control.addAccount(email);
    const { id } = await createBase(ctx, accountId, {
      platform: "airtable",
      apiKey: GOOD_KEY,
      sourceBaseId: "appOne",
    });
    await syncTables(ctx, id, [sourceTable("tblT", "Tasks", { State: "text" })]);
    await syncTables(ctx, id, [sourceTable("tblT", "Work", { Status: "text" })]);
    return getBase(ctx.db, id);
  };
  bases = [await connected("ada@example.org"), await connected("eve@example.org")];
  const databases = await Promise.all(bases.map((base) => getDatabase(ctx.db, base.database.id)));
  const [own, other] = await Promise.all(databases.map((one) => databaseCredentials(ctx, one)));
  const user = await createSqlUser({ ...ctx, actor: ACTOR }, databases[0]!, "analyst");
  const analyst = await sqlUserCredentials(ctx, databases[0]!, user);
  urls = { own: own!.url, other: other!.url, analyst: analyst.url };
}, 120_000);
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

const found = async (base: Base = bases[0]) => {
  const { uses, knowsStatements, aliases } = await oldNames(control.ctx, base);
  expect(aliases.map(({ name }) => name)).toEqual(["tasks", "state"]);
  return {
    knowsStatements,
    statements: uses.map(({ kind, text, calls, aliases: used }) => [
      kind,
      text,
      calls,
      used.map(({ name }) => name),
    ]),
  };
};
const run = (url: string, ...statements: string[]) =>
  asAdmin(async (sql) => {
    for (const one of statements) await sql.unsafe(one);
  }, url);
/** As the server's superuser, in the cluster's own database or in a base's. */
const runAsOperator = (statement: string, database?: string) =>
  asAdmin(
    (admin) => admin.unsafe(statement),
    databaseUrl(replicas.superuserUrl, database ?? new URL(replicas.clusterUrl).pathname.slice(1)),
  );

test("without the extension, nothing is listed, and it is said that statements are not known", async () => {
  expect(await found()).toEqual({ knowsStatements: false, statements: [] });
});

test("statements of the base's own logins are listed; those of other tenants and of the operator are not", async () => {
  await runAsOperator("create schema monitoring; create extension pg_stat_statements schema monitoring");
  const login = decodeURIComponent(new URL(replicas.clusterUrl).username);
  await runAsOperator(`grant usage on schema monitoring to ${login}`);
  await run(urls.own, "select state from work where id = 'secret-1'", "select status from work");
  await run(urls.analyst, "select * from tasks", "select * from tasks", "set search_path to public");
  await run(urls.other, "select state, 'theirs' from work");
  await runAsOperator("select state, 'operator' from public.work", bases[0].database.name);
  // Texts of other roles are hidden from a role without pg_read_all_stats.
  expect(await found()).toEqual({ knowsStatements: false, statements: [] });
  await runAsOperator(`grant pg_read_all_stats to ${login}`);
  expect(await found()).toEqual({
    knowsStatements: true,
    statements: [
      ["statement", "select * from tasks", 2, ["tasks"]],
      ["statement", "select state from work where id = $1", 1, ["state"]],
    ],
  });
  expect((await found(bases[1])).statements).toEqual([
    ["statement", "select state, $1 from work", 1, ["state"]],
  ]);
  // Tenants see nothing of it.
  await expect(run(urls.own, "select * from monitoring.pg_stat_statements")).rejects.toThrow();
});

test("where the extension may not be read, nothing breaks", async () => {
  const login = decodeURIComponent(new URL(replicas.clusterUrl).username);
  await runAsOperator(`revoke usage on schema monitoring from ${login}`);
  expect(await found()).toEqual({ knowsStatements: false, statements: [] });
});
