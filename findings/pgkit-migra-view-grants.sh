#!/usr/bin/env bash
# @pgkit/migra does not see the grants of views: after it has changed a view, its readers cannot read it, and it reports no difference.
#
# @pgkit/migra 0.6.1, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: With withPrivileges ("Also output privilege differences"), it compares the grants of tables only. A view whose columns change is dropped and
# created again, as are the views that use it, without grants. A materialized view also loses its indexes, which only a second run creates. For a grant that
# differs, nothing is written at all.
#
# Who meets it: Teams whose views over a copy are read by roles of their own, such as a dashboard's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 @pgkit/client@0.6.1 @pgkit/migra@0.6.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { createClient } from "@pgkit/client";
import { run } from "@pgkit/migra";

/** A database with a view, a view of that view, and a materialized view, which a role may read as it may the table. */
async function database(columns) {
  const db = await PGlite.create();
  await db.exec(`create role dashboard; create table tasks (id text, name text, due date);
    create view open_tasks as select ${columns} from tasks;
    create view names as select name from open_tasks;
    create materialized view counts as select ${columns}, count(*) from tasks group by ${columns};
    create unique index counts_id on counts (id);
    grant select on tasks, open_tasks, names, counts to dashboard`);
  const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
  await server.start();
  return { db, client: createClient(`postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`) };
}
const now = await database("id, name");
const wanted = await database("id, due, name");
async function show(name, { db }) {
  const { rows } = await db.query(`select relname as name, has_table_privilege('dashboard', oid, 'select') as reads from pg_class
    where relnamespace = 'public'::regnamespace order by relname`);
  console.log(`${name}: ${rows.map(({ name, reads }) => (name === "counts_id" ? name : `${name} ${reads ? "is read" : "is refused"}`)).join(", ")}`);
}
const difference = async () => (await run(now.client, wanted.client, { unsafe: true, withPrivileges: true })).sql.trim();
await show("wanted", wanted);
await now.db.exec(await difference());
await show("after the first run", now);
const second = await difference();
console.log("the second run:", second);
await now.db.exec(second);
console.log("the third run:", (await difference()) || "no difference");
await show("after it", now);
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
wanted: counts is read, counts_id, names is read, open_tasks is read, tasks is read
after the first run: counts is refused, names is refused, open_tasks is refused, tasks is read
the second run: CREATE UNIQUE INDEX counts_id ON public.counts USING btree (id);
the third run: no difference
after it: counts is refused, counts_id, names is refused, open_tasks is refused, tasks is read
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
