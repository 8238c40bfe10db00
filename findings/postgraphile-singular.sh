#!/usr/bin/env bash
# PostGraphile folds two tables into one type, and then builds no schema at all.
#
# postgraphile 5.1.5 (preset Amber), run with Bun 1.4.5, Postgres 18 (PGlite 0.5.14).
#
# Behavior: Types are named by the singular of a table's name, without underscores. Tables task and tasks both become Task, and so do tables that differ by
# an underscore. One conflict is an error for the whole schema; with a smart tag `name` on one of the two, all answer.
#
# Who meets it: Copies of bases, in which tables are named by people.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 postgraphile@5.1.5 bun@1.4.5 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafast } from "postgraphile/grafast";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { makePgSmartTagsPlugin } from "postgraphile/utils";

const db = await PGlite.create();
await db.exec("create table task (id text primary key); create table tasks (id text primary key); create table other (id text primary key)");
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const connectionString = `postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`;
console.error = console.warn = () => {};
for (const tags of [[], [{ kind: "class", match: "public.tasks", tags: { name: "task_list" } }]]) {
  const instance = postgraphile({
    extends: [PostGraphileAmberPreset],
    plugins: [makePgSmartTagsPlugin(tags)],
    pgServices: [makePgService({ connectionString, schemas: ["public"] })],
  });
  const answer = await instance
    .getSchemaResult()
    .then(({ schema, resolvedPreset }) => grafast({ schema, resolvedPreset, requestContext: {}, source: "{ allOthers { nodes { rowId } } }" }))
    .then(({ data, errors }) => JSON.stringify(data ?? errors.map(({ message }) => message)), (error) => error.message.split("\n")[0]);
  console.log(tags.length, "tags:", answer);
  await instance.release();
}
await server.stop();
await db.close();
process.exit(0);
JS
seen=$(GRAPHILE_ENV=development node_modules/.bin/bun main.mjs)
expected=$(
  cat <<'END'
0 tags: A type naming conflict has occurred - two entities have tried to define the same type 'TaskOrderBy'.
1 tags: {"allOthers":{"nodes":[]}}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
