#!/usr/bin/env bash
# postgres.js reads a timestamp in local time, and writes a Date in UTC: a row is not equal to what was read from it.
#
# postgres 3.4.9, with Postgres 18 (PGlite 0.5.14), TZ=America/New_York.
#
# Behavior: A `timestamp` without a zone becomes a Date as if it were local time. A Date as a parameter becomes the text of its moment in UTC.
# Outside of UTC, `where t = ${row.t}` finds nothing, and `>=` other rows.
#
# Who meets it: Copies of Airtable, whose times are UTC in columns without a zone, and programs that page by the last time they read.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 postgres@3.4.9 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import postgres from "postgres";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
const sql = postgres(url, { max: 1 });
await sql`create table t (at timestamp)`;
await sql`insert into t values ('2026-07-01 12:00:00')`;
const [row] = await sql`select at from t`;
console.log("read", row.at.toISOString());
console.log("equal", (await sql`select at from t where at = ${row.at}`).length);
console.log("since", (await sql`select at from t where at >= ${row.at}`).length);
await sql.end();
await server.stop();
await db.close();
JS
seen=$(TZ=America/New_York node main.mjs)
expected=$(
  cat <<'END'
read 2026-07-01T16:00:00.000Z
equal 0
since 0
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
