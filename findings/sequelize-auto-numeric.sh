#!/usr/bin/env bash
# sequelize-auto types a numeric column as number, and Sequelize returns text.
#
# sequelize-auto 0.8.8 with sequelize 6.37.8, Postgres 18 (PGlite 0.5.14).
#
# Behavior: The generated class declares `amount?: number`. A row has '1.50', so that `row.amount + 1` is '1.501', which the compiler accepts.
#
# Who meets it: Copies of Airtable's numbers and currencies, which are numeric columns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 sequelize-auto@0.8.8 sequelize@6.37.8 pg@8.23.1 tedious@18.6.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { DataTypes, Sequelize } from "sequelize";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
await db.exec("create table items (id text primary key, amount numeric); insert into items values ('a', 1.50)");
const words = ["-h", "127.0.0.1", "-p", port, "-d", "postgres", "-u", "postgres", "-x", "x", "-e", "postgres", "-o", "out", "-l", "ts"];
const child = spawn("node", ["node_modules/sequelize-auto/bin/sequelize-auto", ...words], { stdio: "ignore" });
console.log("exit", await new Promise((resolve) => child.on("exit", resolve)));
const text = readFileSync("out/items.ts", "utf8");
console.log([...new Set(text.match(/amount\?: \w+/g))].join(), "|", /amount: \{\s+type: ([\w.]+)/.exec(text)[1]);
const sequelize = new Sequelize(url, { logging: false, pool: { max: 1 } });
const Item = sequelize.define(
  "items",
  { id: { type: DataTypes.TEXT, primaryKey: true }, amount: DataTypes.DECIMAL },
  { timestamps: false },
);
const { amount } = await Item.findOne();
console.log(typeof amount, JSON.stringify(amount + 1));
await sequelize.close();
await server.stop();
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
exit 0
amount?: number | DataTypes.DECIMAL
string "1.501"
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
