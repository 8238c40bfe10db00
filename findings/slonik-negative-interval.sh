#!/usr/bin/env bash
# Slonik reads negative intervals as 0.
#
# slonik 49.10.9 with zod 4.1.13, run with Bun 1.4.5 because it needs Node 24, and Postgres 18 (PGlite 0.5.14).
#
# Behavior: It returns an interval as seconds. On the way, it writes it as an ISO 8601 duration, of which iso8601-duration 2.1.4 reads what is before the first
# minus. So 1 day -02:00 is a whole day, and -1 day 02:00 is 0. There is no error. With `extract(epoch from …)` the seconds are those of Postgres.
#
# Who meets it: Queries for how late something is, such as `due - now()`, and durations of Airtable, which may be negative.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 slonik@49.10.9 zod@4.1.13 \
  iso8601-duration@2.1.4 bun@1.4.5 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { createPool, sql } from "slonik";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = Number(server.getServerConn().split(":").pop());
const pool = await createPool(`postgres://postgres:x@127.0.0.1:${port}/postgres`, { maximumPoolSize: 1, minimumPoolSize: 0 });
for (const text of ["02:30", "-02:30", "-1 day", "1 day -02:00", "-1 day 02:00"]) {
  const { read, seconds } = await pool.one(
    sql.unsafe`select ${text}::interval as read, extract(epoch from ${text}::interval)::int as seconds`,
  );
  console.log(text.padEnd(12), "slonik:", read, "postgres:", seconds);
}
await pool.end();
await server.stop();
await db.close();
JS
seen=$(node_modules/.bin/bun main.mjs)
expected=$(
  cat <<'END'
02:30        slonik: 9000 postgres: 9000
-02:30       slonik: 0 postgres: -9000
-1 day       slonik: 0 postgres: -86400
1 day -02:00 slonik: 86400 postgres: 79200
-1 day 02:00 slonik: 0 postgres: -79200
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
