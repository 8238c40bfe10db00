/** A database whose creation was interrupted: all of it is recorded, and cleaned up. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createBase, finishDeletions, replicaTarget } from "../../../core/control/bases";
import { createHostedDatabase, endMove, getDatabase } from "../../../core/control/placement";
import { newId } from "../../../core/ids";
import { asAdmin } from "../../support/admin";
import { connectAs, GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { until } from "../../support/poll";

let control: TestControl;
let accountId: string;

beforeAll(async () => {
  control = await testControl();
  ({ id: accountId } = await control.addAccount("half@example.com"));
});
afterAll(() => control?.[Symbol.asyncDispose]());

interface Known {
  id: string;
  name: string;
  role: string;
}

const known = () => control.ctx.db<Known[]>`select id, name, role_name as role from databases`;

/** The first one that is recorded. */
function knownFirst(): Promise<Known> {
  return until(async () => (await known())[0], { what: "the database is recorded", intervalMs: 1 });
}

/** Those of the names that exist as a database or a role on the server. */
async function taken(...names: string[]): Promise<string[]> {
  const rows = await control.ctx.db<{ name: string }[]>`
    select datname as name from pg_database where datname = any (${names})
    union all select rolname from pg_roles where rolname = any (${names})`;
  return rows.map((row) => row.name);
}

test("a database is recorded before it is created, so that a crash leaves nothing unrecorded", async () => {
  const { ctx } = control;
  const making = createHostedDatabase(ctx, accountId, "public");
  const row = await knownFirst();
  expect(await taken(row.name)).toEqual([]);
  expect(await making).toEqual(await getDatabase(ctx.db, row.id));

  // As left by a process that died halfway: one has everything except the base, the other only the role.
  const half = { id: newId("database"), name: "bt_half_made_database", role: "bt_half_made_role" };
  await ctx.db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select ${half.id}, ${accountId}, cluster_id, ${half.name}, ${half.role}, 'x' from databases`;
  await asAdmin((admin) => admin.unsafe(`create role ${half.role}`), inject("clusterUrl"));
  const names = [row.name, row.role, half.name, half.role];
  await finishDeletions(ctx, async () => []);
  expect((await taken(...names)).sort()).toEqual([row.name, row.role, half.role].sort());

  await ctx.db`update databases set created_at = now() - interval '2 hours'`;
  await finishDeletions(ctx, async () => []);
  expect([await taken(...names), [...(await known())]]).toEqual([[], []]);
});

test("a database that cannot be created leaves nothing behind", async () => {
  const { ctx } = control;
  // Detected when the schema is created, which comes last.
  const making = createHostedDatabase(ctx, accountId, "no\0schema");
  making.catch(() => {});
  const row = await knownFirst();
  await expect(making).rejects.toThrow();
  expect([await taken(row.name, row.role), [...(await known())]]).toEqual([[], []]);
});

test("a move that another process has ended already is not ended again: the base keeps the replica that it moved to", async () => {
  const { ctx } = control;
  const base = await createBase(ctx, accountId, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const { id, name, schema } = base.database;
  // As a process that read the move before it was ended, and that the base has moved to that database.
  await endMove(ctx, { id: base.id, schema }, id);
  expect([await getDatabase(ctx.db, id), await taken(name)]).toEqual([
    expect.objectContaining({ id }),
    [name],
  ]);
  const target = await replicaTarget(ctx, base);
  await using reader = connectAs(target.url as string);
  expect(await reader.db`select from _sync_meta`).toHaveLength(1);
});

test("a customer's database that no base came to use can be used by another account after an hour", async () => {
  const { ctx } = control;
  const id = newId("database");
  await ctx.db`
    insert into databases (id, account_id, name, role_name, encrypted_url, external_host, external_port, created_at)
    values (${id}, ${accountId}, 'theirs', 'them', 'x', 'db.example', 5432, now() - interval '2 hours')`;
  await finishDeletions(ctx, async () => []);
  expect(await ctx.db`select from databases where id = ${id}`).toEqual([]);
});
