#!/usr/bin/env bash
# TypeORM cannot read a table with a generated column that it has not created.
#
# typeorm 1.1.1, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: QueryRunner.getTable looks a generated column's expression up in its own table typeorm_metadata, and fails if there is none, although the
# server's catalog has the expression. A table without such a column is read.
#
# Who meets it: Tools on TypeORM that read the tables of a copy, where Postgres 18 keeps an old name of a column as a generated one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 typeorm@1.1.1 pg@8.23.1 reflect-metadata@0.2.2 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { DataSource } from "typeorm";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const url = `postgres://postgres:x@127.0.0.1:${port}/postgres`;
await db.exec(`create table plain (id text primary key);
  create table renamed (id text primary key, state text, status text generated always as (state) virtual)`);
const source = await new DataSource({ type: "postgres", url, poolSize: 1 }).initialize();
const runner = source.createQueryRunner();
for (const name of ["plain", "renamed"]) {
  try {
    console.log(name, (await runner.getTable(name)).columns.length);
  } catch (error) {
    console.log(name, error.message);
  }
}
await source.destroy();
await server.stop();
await db.close();
JS
seen=$(node --no-deprecation main.mjs)
expected=$(
  cat <<'END'
plain 1
renamed relation "typeorm_metadata" does not exist
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
