#!/usr/bin/env bash
# pgsql-deparser writes (not a) is not true as not a is not true, which is another condition, and loses the distinct of group by.
#
# pgsql-deparser 18.3.8 with pgsql-parser 18.2.8, Postgres 18 (PGlite 0.5.14).
#
# Behavior: It leaves out the parentheses around NOT in front of IS [NOT] TRUE and IS NULL, and those around AND and OR in front of IS NULL. IS binds more
# tightly than these, so that the query returns other rows. DISTINCT after GROUP BY is gone. A subscript of an array that is written out, (array[a, b])[2], is
# no longer valid SQL.
#
# Who meets it: Programs that read a query or a view, change it, and run what the library writes. A checkbox, or a condition on a field that may be empty, is a
# boolean with null, for which these tests are made.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 pgsql-parser@18.2.8 pgsql-deparser@18.3.8 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { deparse, loadModule, parse } from "pgsql-parser";

await loadModule();
const db = await PGlite.create();
await db.exec("create table tasks (id text, team text, done boolean, late boolean)");
await db.exec("insert into tasks values ('call', 'a', true, null), ('write', 'a', false, true), ('plan', 'b', null, null)");
/** The rows as texts. */
async function run(query) {
  const { rows } = await db.query(query, [], { rowMode: "array" });
  return rows.map((row) => row.join(":")).sort().join(" ");
}
for (const query of [
  "select id from tasks where (not done) is not true",
  "select id from tasks where (done and late) is null",
  "select id from tasks where (done or late) is null",
  "select team, count(*) from tasks group by distinct rollup (team), rollup (team)",
  "select (array[id, team])[2] from tasks",
]) {
  const written = (await deparse(await parse(query))).replace(/\s+/g, " ");
  console.log(query);
  console.log("  Postgres:", await run(query));
  console.log(`  as written, ${written}:`);
  console.log("   ", await run(written).catch((error) => error.message));
}
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
select id from tasks where (not done) is not true
  Postgres: call plan
  as written, SELECT id FROM tasks WHERE NOT (done) IS NOT TRUE:
    call
select id from tasks where (done and late) is null
  Postgres: call plan
  as written, SELECT id FROM tasks WHERE done AND late IS NULL:
    call
select id from tasks where (done or late) is null
  Postgres: plan
  as written, SELECT id FROM tasks WHERE done OR late IS NULL:
    call plan
select team, count(*) from tasks group by distinct rollup (team), rollup (team)
  Postgres: :3 a:2 b:1
  as written, SELECT team, count(*) FROM tasks GROUP BY ROLLUP (team), ROLLUP (team):
    :3 a:2 a:2 a:2 b:1 b:1 b:1
select (array[id, team])[2] from tasks
  Postgres: a a b
  as written, SELECT ARRAY[id, team][2] FROM tasks:
    syntax error at or near "["
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
