/** The control plane's functions through changes of their text. */
import pino from "pino";
import { expect, test } from "vitest";
import { migrateControl, pendingMigrations } from "../../../core/control/setup";
import { controlDatabase } from "../../support/database";

const silent = pino({ level: "silent" });

const functionsOf = async (sql: Awaited<ReturnType<typeof controlDatabase>>["sql"]) => {
  const rows = await sql<{ name: string }[]>`
    select oid::regprocedure::text || ' ' || md5(prosrc) as name from pg_proc
    where pronamespace = 'public'::regnamespace order by 1`;
  return rows.map(({ name }) => name);
};

test("functions of an older version are replaced, and removed ones are dropped", async () => {
  await using database = await controlDatabase();
  const { sql } = database;
  const current = await functionsOf(sql);
  expect(current.length).toBeGreaterThan(10);
  // An older version: another body, a function that was removed, another parameter list; and one that is not ours.
  await sql`create or replace function accept_key(p_base text, p_hash text) returns void language sql as ''`;
  await sql`create function quota_gone() returns void language sql as ''`;
  await sql`create function quota_count(p_key text) returns void language sql as ''`;
  await sql`create function theirs() returns void language sql as ''`;
  await sql`update installed_functions set version = '1 0123456789abcdef',
    signatures = signatures || ${["quota_gone()", "quota_count(text)"]}`;
  expect(await pendingMigrations(sql)).toEqual(["functions"]);
  expect(await migrateControl(database.url, silent)).toEqual([]);
  expect(await pendingMigrations(sql)).toEqual([]);
  expect((await functionsOf(sql)).filter((name) => !name.startsWith("theirs()"))).toEqual(current);
  expect(await functionsOf(sql)).toHaveLength(current.length + 1);
});

test("functions of a newer version are left alone", async () => {
  await using database = await controlDatabase();
  const { sql } = database;
  await sql`create or replace function accept_key(p_base text, p_hash text) returns void language sql as ''`;
  const newer = await functionsOf(sql);
  await sql`update installed_functions set version = '999 0123456789abcdef'`;
  await migrateControl(database.url, silent);
  expect(await pendingMigrations(sql)).toEqual([]);
  expect(await functionsOf(sql)).toEqual(newer);
});
