import { expect, test } from "vitest";
import { controlDatabase, freshDatabase } from "../../support/database";
import { until } from "../../support/poll";

test("a fresh database is empty, separate, and dropped after use", async () => {
  await using other = await freshDatabase();
  let name: string | undefined;
  {
    await using database = await freshDatabase();
    await database.sql`create table t (id int)`;
    [{ name } = { name: undefined }] = await database.sql<
      { name: string }[]
    >`select current_database() as name`;
  }
  expect(await other.sql`select from pg_class where relname = 't'`).toHaveLength(0);
  expect(await other.sql`select from pg_database where datname = ${name!}`).toHaveLength(0);
});

test("concurrently created control databases are all migrated, and separate", async () => {
  const databases = await Promise.all([controlDatabase(), controlDatabase(), controlDatabase()]);
  const [first, ...rest] = databases;
  await first!.sql`create table only_here (id int)`;
  for (const { sql } of rest) {
    expect(await sql`select from pg_class where relname = 'only_here'`).toHaveLength(0);
    expect(await sql`select from pg_class where relname = 'schema_migrations'`).toHaveLength(1);
  }
  for (const database of databases) await database[Symbol.asyncDispose]();
});

test("until returns the first truthy answer, and reports at its deadline what it waited for and saw", async () => {
  let count = 0;
  expect(await until(() => ++count > 2 && count, { what: "three schema checks", intervalMs: 1 })).toBe(3);
  const hopeless = until(() => null, { what: "the impossible happens", timeoutMs: 20, intervalMs: 1 });
  await expect(hopeless).rejects.toThrow("waited 20 ms until the impossible happens; last: null");
});
