#!/usr/bin/env bash
# ts-postgres returns null for every numeric and interval, for arrays of booleans, and for an empty text of an array.
#
# ts-postgres 2.0.4, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: It asks for all columns in the binary format. A value whose type it cannot decode becomes null, as if the column were empty, and so does an
# element of an array that has no bytes. `is null` in the same query is false. Cast to float8 or text, the values arrive.
#
# Who meets it: Copies of Airtable's numbers, currencies and percents, which are numeric columns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 ts-postgres@2.0.4 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { connect } from "ts-postgres";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = Number(server.getServerConn().split(":").pop());
const client = await connect({ host: "127.0.0.1", port, user: "postgres", password: "x", database: "postgres", ssl: "disable" });
const read = ["1.5::numeric", "'{1.5}'::numeric[]", "'02:30'::interval", "'{t,f}'::bool[]", `'{"",a}'::text[]`];
for (const value of [...read, "1.5::numeric::float8", "'02:30'::interval::text"]) {
  const { rows } = await client.query(`select ${value}, ${value} is null`);
  console.log(value, JSON.stringify(rows[0][0]), "is null:", rows[0][1]);
}
await client.end();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
1.5::numeric null is null: false
'{1.5}'::numeric[] null is null: false
'02:30'::interval null is null: false
'{t,f}'::bool[] null is null: false
'{"",a}'::text[] [null,"a"] is null: false
1.5::numeric::float8 1.5 is null: false
'02:30'::interval::text "02:30:00" is null: false
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
