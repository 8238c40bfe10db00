#!/usr/bin/env bash
# n8n's Postgres node loses the backslashes of an array's texts, and makes the text null of an empty element.
#
# n8n-nodes-base 2.41.2 with n8n-workflow 2.41.0 and pg-promise 12.7.1, Postgres 18 (PGlite 0.5.14).
#
# Behavior: "Insert", "Update" and "Insert or Update" write an array as a literal of Postgres in which only double quotes are escaped, so that Postgres takes
# each backslash for an escape of its own. null is the text "null" in it; an array of numbers with a null is refused.
#
# Who meets it: Workflows that copy Airtable's multiple selects, lookups, or names of files to arrays in Postgres.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  n8n-workflow@2.41.0 lodash@4.17.21 pg-promise@12.7.1 pg@8.23.1 >/dev/null
# Its other nodes need hundreds of packages.
npm pack --silent n8n-nodes-base@2.41.2 >/dev/null
mkdir node_modules/n8n-nodes-base
tar xzf n8n-nodes-base-2.41.2.tgz -C node_modules/n8n-nodes-base --strip-components=1
cat >main.mjs <<'JS'
import { createRequire } from "node:module";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import connection from "pg-promise";

const require = createRequire(import.meta.url);
const { execute } = require("n8n-nodes-base/dist/nodes/Postgres/v2/actions/database/insert.operation.js");
const { configureQueryRunner } = require("n8n-nodes-base/dist/nodes/Postgres/v2/helpers/utils.js");
const pglite = await PGlite.create();
await pglite.exec("create table tasks (tags text[], amounts numeric[])");
const server = new PGLiteSocketServer({ db: pglite, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const pgp = connection({ noWarnings: true });
const db = pgp(`postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`);

/** Runs the node for one item, with what n8n gives to it. */
async function insert(item) {
  const parameters = { schema: "public", table: "tasks", options: {}, "columns.mappingMode": "autoMapInputData", "options.outputColumns": ["*"] };
  const node = {
    getNodeParameter: (name) => parameters[name],
    getNode: () => ({ typeVersion: 2.7 }),
    continueOnFail: () => false,
    helpers: { constructExecutionMetaData: (data) => data },
  };
  const options = { nodeVersion: 2.7, operation: "insert" };
  const runQueries = configureQueryRunner.call(node, node.getNode(), false, pgp, db);
  const [{ json }] = await execute.call(node, runQueries, [{ json: item }], options, db, pgp);
  return json;
}
for (const tags of [["red", 'a "b"', "a, b", "one\ntwo"], ["C:\\temp\\notes.txt"], ["\\d+"], ["red", null]]) {
  console.log(JSON.stringify(tags), "->", JSON.stringify((await insert({ tags })).tags));
}
console.log("[1,null] ->", await insert({ amounts: [1, null] }).then(({ amounts }) => JSON.stringify(amounts), (error) => error.message));
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
["red","a \"b\"","a, b","one\ntwo"] -> ["red","a \"b\"","a, b","one\ntwo"]
["C:\\temp\\notes.txt"] -> ["C:tempnotes.txt"]
["\\d+"] -> ["d+"]
["red",null] -> ["red","null"]
[1,null] -> invalid input syntax for type numeric: "null"
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
