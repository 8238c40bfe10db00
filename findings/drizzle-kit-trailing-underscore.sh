#!/usr/bin/env bash
# drizzle-kit pull gives the columns id and id_ one property, and the table loses its key.
#
# drizzle-kit 0.31.11 with drizzle-orm 0.45.4, Postgres 18 (PGlite 0.5.14).
#
# Behavior: Names become camelCase, which drops an underscore at the end. The object of the table has the same property twice, and the last one
# wins: for Drizzle, the table has the columns id_ and name only, and no key. It ends without a warning.
#
# Who meets it: Copies of tables with a field named ID, which becomes id_ next to the record's id.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 drizzle-kit@0.31.11 drizzle-orm@0.45.4 pg@8.23.1 tsx@4.21.0 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
await db.exec("create table items (id text primary key, name text, id_ text)");
writeFileSync("drizzle.config.json", JSON.stringify({ dialect: "postgresql", out: "out", dbCredentials: { url } }));
const pull = ["node_modules/drizzle-kit/bin.cjs", "pull", "--config=drizzle.config.json"];
const child = spawn("node", pull, { stdio: "ignore" });
console.log("exit", await new Promise((resolve) => child.on("exit", resolve)));
const lines = readFileSync("out/schema.ts", "utf8").split("\n");
console.log(lines.filter((line) => /^\s+(id|name)/.test(line)).map((line) => line.trim()).join("\n"));
writeFileSync("show.ts", `import { getTableConfig } from "drizzle-orm/pg-core";
import { items } from "./out/schema";
console.log(getTableConfig(items).columns.map(({ name, primary }) => name + (primary ? " (key)" : "")).join(", "));`);
const show = spawn("node", ["--import", "tsx", "show.ts"], { stdio: "inherit" });
await new Promise((resolve) => show.on("exit", resolve));
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
exit 0
id: text().primaryKey().notNull(),
name: text(),
id: text("id_"),
id_, name
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
