/** Migrations can be undone, in reverse, and done again, with rows in the tables that they change. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addPlainBases } from "../support/plain-bases";
import { type TestControl, testControl } from "./control-support";

const FOLDER = new URL("../../sql/control/", import.meta.url);
/** Later ones are committed to go back; of those before only the newest schema was ever asked for. */
const FIRST = "0017";

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(async () => {
  const { db } = control.ctx;
  await db`delete from bases`;
  await db`delete from databases`;
  await control[Symbol.asyncDispose]();
});

const migrations = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".sql") && file >= FIRST)
  .sort()
  .map((file) => {
    const [up, down] = readFileSync(new URL(file, FOLDER), "utf8").split("-- Down Migration");
    return { file, up: up!, down: down! };
  });

/** All that a schema is made of, in the order of its names, not of when it was made. */
async function schema() {
  const { db } = control.ctx;
  const columns = await db`
    select table_name, column_name, data_type, is_nullable, column_default
    from information_schema.columns where table_schema = 'public' order by 1, 2`;
  const functions = await db`
    select p.oid::regprocedure::text as name, md5(prosrc) as body, proconfig::text as settings
    from pg_proc as p where pronamespace = 'public'::regnamespace order by 1`;
  const constraints = await db`
    select conrelid::regclass::text as on, conname, pg_get_constraintdef(oid) as is
    from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`;
  const indexes = await db`select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1`;
  return {
    columns: [...columns],
    functions: [...functions],
    constraints: [...constraints],
    indexes: [...indexes],
  };
}

test("each goes back in reverse and forth again, and leaves the schema and the rows as they were", async () => {
  const { db } = control.ctx;
  const [id = ""] = await addPlainBases(control, 1);
  const [{ key } = { key: "" }] = await db<{ key: string }[]>`
    select platform || ':' || source_base_id as key from bases where id = ${id}`;
  await db`select quota_block(${key}, 1000, 'rate_limited')`;
  await db`select accept_key(split_part(${key}, ':', 2), 'hash')`;
  await db`insert into repairs (base_id, table_ref, record_id, unsettled) values (${id}, 'T', 'rec1', 3)`;
  await db`insert into task_attempts (task, subject) values ('deletion', ${id})`;
  const before = await schema();
  expect(migrations.length).toBeGreaterThanOrEqual(4);
  for (const { file, down } of migrations.toReversed()) {
    await db.begin((sql) => sql.unsafe(down)).catch((error) => expect(`${file}: ${error}`).toBe("undone"));
  }
  expect(await schema()).not.toEqual(before);
  for (const { file, up } of migrations) {
    await db.begin((sql) => sql.unsafe(up)).catch((error) => expect(`${file}: ${error}`).toBe("done"));
  }
  expect(await schema()).toEqual(before);
  expect(await db`select from bases where id = ${id}`).toHaveLength(1);
  expect(await db`select from repairs where base_id = ${id}`).toHaveLength(1);
});

test("the calls of versions before them work on the newest schema", async () => {
  const { db } = control.ctx;
  const key = "airtable:appOld";
  const now = Date.now();
  await db`select quota_attend('old', ${now}) as share`;
  const [taken] = await db<{ slots: number[] }[]>`
    select asked_at, slots, next_at from quota_take(${key}, 'client', 1, ${[0]}, ${[]}, null, null, 0)`;
  expect(taken!.slots).toHaveLength(1);
  await db`select quota_late(${key}, ${taken!.slots[0]!})`;
  await db`select quota_slow(${key}, ${now + 60_000}::float8, true, ${now}::float8)`;
  expect(await db`select from quota_slowed where key = ${key}`).toHaveLength(1);
  await db`select quota_hasten(${key})`;
  expect(await db`select from quota_slowed where key = ${key}`).toHaveLength(0);
  await db`select quota_block(${key}, 1000, 'rate_limited')`;
  await db`select quota_leave(${key}, 'wsp_old')`;
  await db`select quota_forget(${key})`;
});
