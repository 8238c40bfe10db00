#!/usr/bin/env bash
# Evidence's connector makes positive amounts of negative ones of the type money, and leaves out a column whose name differs by case only.
#
# @evidence-dev/postgres 1.0.10, Postgres 18 (PGlite 0.5.14).
#
# Behavior: It takes all but digits and points out of a value of the type money, the minus as well: a sum in Evidence adds what it should subtract. Names of
# columns are made lowercase, so that of "Name" and name one is left, twice in the list of columns. There is no error.
#
# Who meets it: Teams whose queries for Evidence cast Airtable's currency fields to money, for the sign of the currency, or give columns names of their own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  @evidence-dev/postgres@1.0.10 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import evidence from "@evidence-dev/postgres";

const db = await PGlite.create();
await db.exec("create table payments (id text, amount numeric); insert into payments values ('paid', 1200.5), ('refunded', -1200.5)");
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const connectionString = `postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`;
const run = await evidence.getRunner({ connectionString });
for (const query of [
  "select id, amount from payments",
  "select id, amount::money from payments",
  "select id, amount::money::text as shown from payments",
  'select id as "Name", amount as name from payments',
]) {
  const { rows, columnTypes } = await run(query, "payments.sql", 100);
  console.log(query);
  for await (const batch of rows()) console.log("  rows:", JSON.stringify(batch));
  console.log("  columns:", columnTypes.map(({ name, evidenceType }) => `${name} ${evidenceType}`).join(", "));
}
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
select id, amount from payments
  rows: [{"id":"paid","amount":1200.5},{"id":"refunded","amount":-1200.5}]
  columns: id string, amount number
select id, amount::money from payments
  rows: [{"id":"paid","amount":1200.5},{"id":"refunded","amount":1200.5}]
  columns: id string, amount number
select id, amount::money::text as shown from payments
  rows: [{"id":"paid","shown":"$1,200.50"},{"id":"refunded","shown":"-$1,200.50"}]
  columns: id string, shown string
select id as "Name", amount as name from payments
  rows: [{"name":1200.5},{"name":-1200.5}]
  columns: name string, name number
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
