#!/usr/bin/env bash
# kysely-codegen writes a description that contains */ as it is, and the rest of it becomes code.
#
# kysely-codegen 0.20.0 with kysely 0.29.9, Postgres 18 (PGlite 0.5.14).
#
# Behavior: The comment of a column becomes a comment in the file. Its text is not changed, so the first */ in it ends the comment, and the file does not
# compile. A description that continues as TypeScript would become part of the types. The command ends without an error.
#
# Who meets it: Bases with a description such as "src/**/*.ts" or "*/5 * * * *", which a copy has as the column's comment.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 kysely@0.29.9 kysely-codegen@0.20.0 pg@8.23.1 typescript@5.9.3 >/dev/null
cat >main.mjs <<'JS'
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
await db.exec("create table jobs (id text primary key, runs text); comment on column jobs.runs is 'Cron, such as */5 * * * *'");
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
const words = ["node_modules/kysely-codegen/dist/cli/bin.js", "--dialect", "postgres", "--url", url, "--out-file", "db.ts"];
const [code] = await once(spawn(process.execPath, words, { stdio: "ignore" }), "exit");
console.log(`exit code ${code}`);
const lines = readFileSync("db.ts", "utf8").split("\n");
const from = lines.findIndex((line) => line.includes("Cron"));
console.log(lines.slice(from - 1, from + 3).join("\n"));
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
exit code 0
  /**
   * Cron, such as */5 * * * *
   */
  runs: string | null;
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
