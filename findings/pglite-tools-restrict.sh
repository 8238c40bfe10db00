#!/usr/bin/env bash
# The dump of pglite-tools lacks lines of texts that begin with \restrict.
#
# @electric-sql/pglite-tools 0.4.8 (pg_dump 18.3) with @electric-sql/pglite 0.5.8.
#
# Behavior: pgDump removes the commands \restrict and \unrestrict, which pg_dump writes at the start and the end, with an expression that matches every
# line of the dump. A line of a cell that begins with one of these words is gone, too, without an error.
#
# Who meets it: People who dump a PGlite database whose texts are documentation of psql, or messages about this very command.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.8 @electric-sql/pglite-tools@0.4.8 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { pgDump } from "@electric-sql/pglite-tools/pg_dump";

const db = await PGlite.create();
await db.exec("create table notes (id int primary key, body text)");
const body = "In psql:\n\\restrict key\nonly \\unrestrict is accepted.";
await db.query("insert into notes values (1, $1)", [body]);
const dump = await (await pgDump({ pg: db })).text();
const other = await PGlite.create();
await other.exec(dump);
const { rows } = await other.query("select body from public.notes");
console.log(JSON.stringify(body));
console.log(JSON.stringify(rows[0].body));
await db.close();
await other.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
"In psql:\n\\restrict key\nonly \\unrestrict is accepted."
"In psql:\nonly \\unrestrict is accepted."
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
