#!/usr/bin/env bash
# MikroORM writes some texts of an array as others: NULL as null, and a space or a line break is lost.
#
# @mikro-orm/postgresql 7.2.5, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: It quotes an element of a text array only if that is empty or has a comma, a brace, a quote or a backslash, and it quotes as JSON does. So Postgres
# reads NULL as a null, drops blanks at the ends, and takes the \n of a quoted element for the letter n. There is no error, and the entity keeps its value.
#
# Who meets it: Programs that write selects, lookups or long texts of a base into an array, which node-postgres alone writes as they are.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  @mikro-orm/core@7.2.5 @mikro-orm/postgresql@7.2.5 >/dev/null
cat >main.mjs <<'JS'
import { EntitySchema, MikroORM, types } from "@mikro-orm/postgresql";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = Number(server.getServerConn().split(":").pop());
await db.exec("create table tasks (id text primary key, notes text[])");
const Task = new EntitySchema({
  name: "Task",
  tableName: "tasks",
  properties: { id: { type: "text", primary: true }, notes: { type: types.array, columnType: "text[]" } },
});
const clientUrl = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
const orm = await MikroORM.init({ clientUrl, entities: [Task], pool: { min: 0, max: 1 }, allowGlobalContext: true });
const notes = ["Open", "a, b", "two\nlines", "first, second\nthird", " indented", "NULL"];
orm.em.create(Task, { id: "a", notes });
await orm.em.flush();
const { rows } = await db.query("select notes from tasks");
for (const [nth, text] of notes.entries()) console.log(JSON.stringify(text), rows[0].notes[nth] === text ? "ok" : JSON.stringify(rows[0].notes[nth]));
await orm.close();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
"Open" ok
"a, b" ok
"two\nlines" ok
"first, second\nthird" "first, secondnthird"
" indented" "indented"
"NULL" null
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
