#!/usr/bin/env bash
# sql-ts leaves out the spaces of a column's name: its interface has a property that no row has, and two columns become one.
#
# @rmp135/sql-ts 2.2.0 with typescript 5.9.3, Postgres 18 (PGlite 0.5.14).
#
# Behavior: By default ("columnNameCasing" undefined), a column "Record ID" is the property RecordID, while hyphens, dots, and other signs stay. TypeScript
# then accepts row.RecordID, which is undefined, and refuses row["Record ID"]. A second column "RecordID" makes a property twice.
#
# Who meets it: Teams that keep Airtable's names of fields as names of columns, or give them to the columns of a view.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  @rmp135/sql-ts@2.2.0 pg@8.23.1 typescript@5.9.3 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { Client as SqlTs } from "@rmp135/sql-ts";
import pg from "pg";
import ts from "typescript";

const db = await PGlite.create();
await db.exec(`create table tasks (id text, "Due date" date, "Cost, net" numeric, "Est. hours" numeric);
  create view named as select id as "Record ID", id as "RecordID" from tasks; insert into tasks values ('rec1', '2026-07-01', 1, 2)`);
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const connection = `postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`;
const written = await SqlTs.fromConfig({ client: "pg", connection }).fetchDatabase().toTypescript();
console.log(written.slice(written.indexOf("export")).replaceAll("\r", "").trim());

const client = new pg.Client(connection);
await client.connect();
const { rows } = await client.query("select * from tasks");
console.log("a row:", Object.keys(rows[0]).join(" | "));

/** What TypeScript says of a program that uses the interface. */
function check(code) {
  ts.sys.writeFile("program.ts", `${written.replace(/export interface named[^}]*}/, "")}\ndeclare const row: tasksEntity;\n${code};\n`);
  const problems = ts.getPreEmitDiagnostics(ts.createProgram(["program.ts"], { strict: true, noEmit: true, types: [] }));
  console.log(`${code}:`, problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " ")).join(" ") || "accepted");
}
check("row.Duedate");
check('row["Due date"]');
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
export interface namedEntity {
  'RecordID'?: string | null;
  'RecordID'?: string | null;
}
export interface tasksEntity {
  'Cost,net'?: string | null;
  'Duedate'?: Date | null;
  'Est.hours'?: string | null;
  'id'?: string | null;
}
a row: id | Due date | Cost, net | Est. hours
row.Duedate: accepted
row["Due date"]: Property 'Due date' does not exist on type 'tasksEntity'. Did you mean 'Duedate'?
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
