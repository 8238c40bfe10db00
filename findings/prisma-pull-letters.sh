#!/usr/bin/env bash
# The schema that Prisma's engine writes for a table without Latin letters in its name has a model without a name, which Prisma refuses.
#
# @prisma/schema-engine-wasm and @prisma/prisma-schema-wasm 7.10.0 (what `prisma db pull` and `prisma generate` run), with @prisma/adapter-pg 7.10.0 and
# Postgres 18 (PGlite 0.5.14). Its "char" columns are read as texts (see prisma-adapter-char.sh).
#
# Behavior: Characters that a model's name cannot have are taken out, and @@map keeps the table's name. If none is left, the line is `model  {`. A column
# of such letters becomes a comment instead, and the file stays valid.
#
# Who meets it: People whose tables have names in Japanese, Greek, Russian or another script. One of them makes the whole file invalid.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
commit=0edf323efd1d98336f3f0a68684b56f689b900d3
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 pg@8.23.1 \
  @prisma/adapter-pg@7.10.0 @prisma/driver-adapter-utils@7.10.0 \
  "@prisma/schema-engine-wasm@7.10.0-4.$commit" "@prisma/prisma-schema-wasm@7.10.0-4.$commit" >/dev/null
cat >main.mjs <<'JS'
import { readFileSync } from "node:fs";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from "@prisma/driver-adapter-utils";
import prisma from "@prisma/prisma-schema-wasm";
import * as engine from "@prisma/schema-engine-wasm/schema_engine_bg";
import pg from "pg";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
await db.exec('create table größe (id text primary key, "名前" text); create table "名前" (id text primary key)');

const wasm = new URL("schema_engine_bg.wasm", import.meta.resolve("@prisma/schema-engine-wasm/schema_engine_bg"));
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), { "./schema_engine_bg.js": engine });
engine.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();
let chars = [];
class Pool extends pg.Pool {
  async query(...args) {
    const result = await super.query(...args);
    chars = result.fields.flatMap(({ dataTypeID }, at) => (dataTypeID === 18 ? [at] : []));
    for (const at of chars) result.fields[at].dataTypeID = 25;
    return result;
  }
}
class Adapter extends PrismaPg {
  async connect() {
    const adapter = await super.connect();
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.queryRaw = async (query) => {
      const result = await queryRaw(query);
      for (const at of chars) result.columnTypes[at] = ColumnTypeEnum.Character;
      return result;
    };
    return adapter;
  }
}
const content = 'datasource db {\n  provider = "postgresql"\n}\n';
const pool = new Pool({ connectionString: `postgres://postgres:x@127.0.0.1:${port}/postgres`, max: 1 });
const factory = bindMigrationAwareSqlAdapterFactory(new Adapter(pool));
const puller = await engine.SchemaEngine.new({ datamodels: [["schema.prisma", content]] }, () => {}, factory);
const { schema } = await puller.introspect({
  schema: { files: [{ path: "schema.prisma", content }] },
  baseDirectoryPath: process.cwd(),
  force: false,
  compositeTypeDepth: 0,
  namespaces: null,
});
const text = schema.files[0].content;
console.log(text.split("\n").filter((line) => /^model|@@map|名/.test(line)).join("\n"));
try {
  prisma.validate(JSON.stringify({ prismaSchema: [["schema.prisma", text]], noColor: true }));
  console.log("valid");
} catch (error) {
  console.log(JSON.parse(error.message).message.match(/This block is invalid\./)?.[0] ?? error.message);
}
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
model gr__e {
  // 名前 String? @map("名前")
  @@map("größe")
model  {
@@map("名前")
This block is invalid.
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
