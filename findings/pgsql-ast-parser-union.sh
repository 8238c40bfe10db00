#!/usr/bin/env bash
# pgsql-ast-parser gives ORDER BY and LIMIT of a UNION to its last SELECT, and rounds numbers.
#
# pgsql-ast-parser 12.0.2, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: It reads `select … union select … order by … limit …` as if ORDER BY and LIMIT were in the last SELECT, and writes it back that way: the order and
# the limit of the whole are gone. Around the union in a subquery, they stay. A number is a JavaScript number, so digits after the 17th are lost, and a whole
# number above 2^53 is another one. 1e3 is 1 with the name e3. There is no error.
#
# Who meets it: Programs that read a query, change it, and run what the parser writes: those that add a limit, a filter, or a schema. Tests with pg-mem, which
# uses the parser.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 pgsql-ast-parser@12.0.2 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { parse, toSql } from "pgsql-ast-parser";

const db = await PGlite.create();
await db.exec("create table tasks (id text, due date, amount numeric); create table ideas (id text, due date)");
await db.exec("insert into tasks values ('call', '2026-07-03', 12345678901234567890.12), ('write', '2026-07-01', 1)");
await db.exec("insert into ideas values ('plan', '2026-07-02')");
/** The rows as texts. */
async function run(query) {
  const { rows } = await db.query(`select t::text from (${query}) as t`);
  return rows.map(({ t }) => t).join(" ");
}
for (const query of [
  "select id, due from tasks union select id, due from ideas order by due limit 1",
  "select * from (select id, due from tasks union select id, due from ideas) as u order by due limit 1",
  "select id from tasks where amount = 12345678901234567890.12",
  "select 9007199254740993 as big",
  "select 1e3",
]) {
  const written = toSql.statement(parse(query)[0]);
  console.log(query);
  console.log("  Postgres:", await run(query));
  console.log("  as written:", await run(written).catch((error) => error.message));
}
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
select id, due from tasks union select id, due from ideas order by due limit 1
  Postgres: (write,2026-07-01)
  as written: (plan,2026-07-02) (write,2026-07-01) (call,2026-07-03)
select * from (select id, due from tasks union select id, due from ideas) as u order by due limit 1
  Postgres: (write,2026-07-01)
  as written: (write,2026-07-01)
select id from tasks where amount = 12345678901234567890.12
  Postgres: (call)
  as written: 
select 9007199254740993 as big
  Postgres: (9007199254740993)
  as written: (9007199254740992)
select 1e3
  Postgres: (1000)
  as written: (1)
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
