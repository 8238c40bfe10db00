#!/usr/bin/env bash
# postgrejs writes arrays that begin at 0: tags[1] is the second element, = finds no row, and postgres.js reads a list in a list.
#
# postgrejs 2.23.1 and postgres 3.4.9, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: postgrejs sends a list in the binary format with 0 as the lower bound, where Postgres begins at 1. Postgres keeps the bound, and arrays of other
# bounds are not equal, while @> and any() look at the elements. Postgres writes such an array as [0:1]={red,blue}, of which postgres.js reads the braces as an
# inner list.
#
# Who meets it: Programs that write lists of links or selects, or compare with them, next to other programs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  postgrejs@2.23.1 postgres@3.4.9 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { Connection } from "postgrejs";
import postgres from "postgres";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = Number(server.getServerConn().split(":").pop());
await db.exec("create table tasks (id text primary key, tags text[]); insert into tasks values ('sql', array['red', 'blue'])");
const connection = new Connection({ host: "127.0.0.1", port, user: "postgres", password: "x", database: "postgres" });
await connection.connect();
const tags = ["red", "blue"];
await connection.query("insert into tasks values ('postgrejs', $1)", { params: [tags] });
for (const condition of ["tags = $1::text[]", "tags @> $1::text[]"]) {
  const found = await connection.query(`select id from tasks where ${condition} order by id desc`, { params: [tags] });
  console.log(condition, "finds:", found.rows.flat().join(", "));
}
await connection.close();
const sql = postgres(`postgres://postgres:x@127.0.0.1:${port}/postgres`, { max: 1 });
for (const row of await sql`select id, tags::text as written, tags[1] as first, tags from tasks order by id desc`) console.log(JSON.stringify(row));
await sql.end();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
tags = $1::text[] finds: postgrejs
tags @> $1::text[] finds: sql, postgrejs
{"id":"sql","written":"{red,blue}","first":"red","tags":["red","blue"]}
{"id":"postgrejs","written":"[0:1]={red,blue}","first":"blue","tags":[["red","blue"]]}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
