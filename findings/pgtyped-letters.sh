#!/usr/bin/env bash
# pgtyped skips a file of queries in which a quoted name has a letter outside of ASCII, and ends without an error.
#
# @pgtyped/cli 2.4.3, with Postgres 18 (PGlite 0.5.14), `failOnError: true`.
#
# Behavior: Its parser of SQL files knows ASCII letters only, even between double quotes. One such name, and no query of the file gets types;
# the exit code is 0. Without that query, the same file gets them.
#
# Who meets it: Bases with field names such as Größe, whose columns keep the letters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 @pgtyped/cli@2.4.3 @pgtyped/runtime@2.4.2 typescript@5.9.3 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
await db.exec('create table items (id text, "größe" numeric)');
mkdirSync("src");
const connection = { host: "127.0.0.1", port: Number(port), user: "postgres", password: "x", dbName: "postgres" };
const transforms = [{ mode: "sql", include: "**/*.sql", emitTemplate: "{{dir}}/{{name}}.queries.ts" }];
writeFileSync("config.json", JSON.stringify({ transforms, srcDir: "src/", failOnError: true, db: connection }));
const plain = "/* @name Plain */\nselect id from items;\n";
const named = '/* @name Named */\nselect "größe" from items;\n';
for (const [name, text] of [["plain", plain], ["both", `${plain}\n${named}`]]) {
  writeFileSync("src/queries.sql", text);
  const child = spawn("node", ["node_modules/@pgtyped/cli/lib/index.js", "-c", "config.json"], { stdio: "ignore" });
  const code = await new Promise((resolve) => child.on("exit", resolve));
  console.log(name, "exit", code, "types", existsSync("src/queries.queries.ts"));
  rmSync("src/queries.queries.ts", { force: true });
}
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
plain exit 0 types true
both exit 0 types false
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
