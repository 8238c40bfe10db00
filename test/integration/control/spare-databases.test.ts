/** Spare databases: claimed by one account each, safe until then, and after a restore of the control plane. */
import postgres from "postgres";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createBase } from "../../../core/control/bases";
import {
  checkReplicas,
  createHostedDatabase,
  databaseCredentials,
  getDatabase,
  orphansOn,
} from "../../../core/control/placement";
import { installationId, listClusters } from "../../../core/control/placement/clusters";
import { consoleLogin } from "../../../core/control/placement/console-role";
import {
  dropDatabase,
  nameDatabase,
  prepareSpare,
  provisionDatabase,
  spareDatabases,
} from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { type TestControl, testControl } from "../../support/control-support";

let control: TestControl;
let accountId: string;
let installation: string;
const clusterUrl = inject("clusterUrl");

beforeAll(async () => {
  control = await testControl();
  ({ id: accountId } = await control.addAccount("spare@example.com"));
  installation = await installationId(control.ctx.db);
});
afterAll(async () => {
  while ((await spares()).length > 0) await create();
  const rows = await control.ctx.db<{ name: string; role: string }[]>`
    select name, role_name as role from databases`;
  for (const { name, role } of rows) await dropDatabase(clusterUrl, name, role);
  await control?.[Symbol.asyncDispose]();
});

const prepare = () => prepareSpare(clusterUrl, installation);
const spares = async () => (await spareDatabases(clusterUrl, installation)).map(({ database }) => database);
const create = (schema = "public") => createHostedDatabase(control.ctx, accountId, schema);
/** How many databases have the installation's label. */
const labelled = () =>
  asAdmin(async (admin) => {
    const [row] = await admin<{ count: number }[]>`
      select count(*)::int as count from pg_database
      where starts_with(shobj_description(oid, 'pg_database'), ${`basetide ${installation} `})`;
    return row!.count;
  }, clusterUrl);

/** Adds a base to the database, without which it is not checked. */
async function checked(id: string) {
  const database = await getDatabase(control.ctx.db, id);
  return checkReplicas(control.ctx, { ...database, schemas: ["public"] });
}

test("is prepared once, and nobody may connect to it", async () => {
  await prepare();
  await prepare();
  const [spare, ...others] = await spares();
  expect(others).toEqual([]);
  const rows = await asAdmin(
    (admin) => admin<{ name: string; limit: number }[]>`
      select rolname as name, rolconnlimit as limit from pg_roles
      where rolcanlogin and not rolsuper and not rolcreatedb
        and has_database_privilege(oid, ${spare!}, 'connect') order by 1`,
    clusterUrl,
  );
  expect(rows.map(({ limit }) => limit)).toEqual([0, 0]);
  // `doctor` does not take it for a database that was left behind, however old it is.
  await asAdmin(
    (admin) =>
      admin.unsafe(`comment on database ${spare} is 'basetide ${installation} 2020-01-01T00:00:00Z'`),
    clusterUrl,
  );
  const [cluster] = await listClusters(control.ctx.db);
  expect(await orphansOn(control.ctx, cluster!)).toEqual([]);
});

test("is claimed by one of several accounts that ask at once, and is then like any other", async () => {
  await prepare();
  const [spare] = await spares();
  let used = 0;
  const ctx = { ...control.ctx, spares: { used: () => void used++ } };
  const made = await Promise.all([1, 2, 3].map(() => createHostedDatabase(ctx, accountId, "public")));
  expect(made.filter(({ name }) => name === spare)).toHaveLength(1);
  expect(new Set(made.map(({ name }) => name)).size).toBe(3);
  expect([used, await spares()]).toEqual([1, []]);
  const claimed = made.find(({ name }) => name === spare)!;
  expect(await checked(claimed.id)).toEqual([]);
  const { url } = await databaseCredentials(control.ctx, claimed);
  const { role, password } = await consoleLogin(control.ctx, claimed);
  for (const login of [{}, { username: role, password }]) {
    const sql = postgres(Object.assign(new URL(url), login).href, { max: 1, onnotice: () => {} });
    expect(await sql`select count(*)::int as count from _sync_meta`).toHaveLength(1);
    await expect(sql`create table own (id int)`).rejects.toThrow();
    await sql.end();
  }
});

test("is not claimed for a base whose check fails, which decides the error", async () => {
  await prepare();
  const before = await spares();
  const made = async () => {
    const rows = await control.ctx.db<{ name: string }[]>`select name from databases order by 1`;
    return rows.map(({ name }) => name);
  };
  const known = await made();
  for (const destination of [{ kind: "new" as const }, { kind: "new" as const, region: "nowhere" }]) {
    const refused = createBase(control.ctx, accountId, {
      platform: "airtable",
      apiKey: "patWrong.key",
      sourceBaseId: "appOne",
      destination,
    });
    await expect(refused).rejects.toMatchObject({ code: "source_key_refused" });
  }
  expect([await spares(), await made()]).toEqual([before, known]);
});

test("is not used for another schema", async () => {
  await prepare();
  const { name } = await create("sales");
  expect(await spares()).not.toContain(name);
  expect(await spares()).toHaveLength(1);
});

test("is not handed out again by a control plane that was restored from before it was claimed", async () => {
  await prepare();
  const claimed = await create();
  await control.ctx.db`delete from databases where id = ${claimed.id}`;
  const next = await create();
  expect(next.name).not.toBe(claimed.name);
  await dropDatabase(clusterUrl, claimed.name, claimed.role);
});

test("is not handed out if a claim was interrupted after it was recorded", async () => {
  await prepare();
  const [spare] = await spares();
  await control.ctx.db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select 'dat_half', ${accountId}, cluster_id, ${spare!}, 'bt_half', 'x' from databases limit 1`;
  expect((await create()).name).not.toBe(spare);
  await control.ctx.db`delete from databases where id = 'dat_half'`;
  expect((await create()).name).toBe(spare);
});

test("one whose preparation was interrupted is dropped", async () => {
  const before = await labelled();
  const named = nameDatabase();
  const comment = `basetide spare ${installation} ${named.database} incomplete`;
  await provisionDatabase(clusterUrl, installation, named, {
    ofRole: `comment on role ${named.role} is '${comment}'`,
  });
  expect([await spares(), await labelled()]).toEqual([[named.database], before + 1]);
  const { name } = await create();
  expect(name).not.toBe(named.database);
  await prepare();
  expect(await spares()).toHaveLength(1);
  expect(await spares()).not.toContain(named.database);
  // The dropped one, another spare, and the one that was created.
  expect(await labelled()).toBe(before + 2);
});
