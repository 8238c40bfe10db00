#!/usr/bin/env bash
# node-postgres returns a numeric as text, but an array of them as floats.
#
# pg 8.23.1, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: `numeric` is text, so that no digit is lost. The elements of `numeric[]` go through parseFloat: digits after the 17th are lost, and the
# types differ from those of the column itself.
#
# Who meets it: Aggregates over a synced base, such as array_agg(amount).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.23.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import pg from "pg";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
const client = new pg.Client(url);
await client.connect();
const { rows } = await client.query(
  "select n as one, array_agg(n) as many from (values (12345678901234567890.12::numeric)) as t (n) group by n",
);
console.log(JSON.stringify(rows[0]));
await client.end();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
{"one":"12345678901234567890.12","many":[12345678901234567000]}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
