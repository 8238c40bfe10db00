#!/usr/bin/env bash
# Prisma's adapter for node-postgres refuses a query that returns a column of Postgres' type "char".
#
# @prisma/adapter-pg 7.10.0 with pg 8.23.1, Postgres 18 (PGlite 0.5.14).
#
# Behavior: Most of the catalog's one-letter codes have this type: relkind of pg_class, attgenerated of pg_attribute, contype of pg_constraint. The adapter
# has no entry for it, and the whole query fails: Column type 'char' could not be deserialized. A cast to text is accepted.
#
# Who meets it: Programs with Prisma's client that look at the catalog of a copy by $queryRaw, and those that run Prisma's schema engine with this adapter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 @prisma/adapter-pg@7.10.0 pg@8.23.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { PrismaPg } from "@prisma/adapter-pg";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
await db.exec("create table t (id text primary key)");
const adapter = await new PrismaPg({ connectionString: `postgres://postgres:x@127.0.0.1:${port}/postgres`, max: 1 }).connect();
for (const column of ["relkind", "array[relkind]", "relkind::text"]) {
  const sql = `select ${column} as kind from pg_class where relname = 't'`;
  const found = adapter.queryRaw({ sql, args: [], argTypes: [] }).then(({ rows }) => JSON.stringify(rows));
  console.log(column, await found.catch((error) => JSON.stringify(error.cause ?? error.message)));
}
await adapter.dispose();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
relkind {"kind":"UnsupportedNativeDataType","type":"char"}
array[relkind] [["{r}"]]
relkind::text [["r"]]
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
