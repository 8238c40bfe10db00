#!/usr/bin/env bash
# postgres.js returns the text NULL for an empty element of a text array, and false for one of a boolean array.
#
# postgres 3.4.9, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: An element that is NULL has the same form in the array's text as the unquoted word NULL, and the driver keeps the word. An element
# that is the text NULL is quoted by the server, and read the same: the two cannot be told apart. node-postgres returns null.
#
# Who meets it: Lookups and multiple values of a synced base, whose arrays may have empty elements.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 postgres@3.4.9 pg@8.23.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import pg from "pg";
import postgres from "postgres";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
const query = "select array['a', null, 'NULL'] as texts, array[true, null] as flags";
const sql = postgres(url, { max: 1 });
console.log("postgres", JSON.stringify((await sql.unsafe(query))[0]));
await sql.end();
const client = new pg.Client(url);
await client.connect();
console.log("pg", JSON.stringify((await client.query(query)).rows[0]));
await client.end();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
postgres {"texts":["a","NULL","NULL"],"flags":[true,false]}
pg {"texts":["a",null,"NULL"],"flags":[true,null]}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
