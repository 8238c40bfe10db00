#!/usr/bin/env bash
# DuckDB reads an empty text of Postgres' CSV as NULL.
#
# @duckdb/node-api 1.5.6-r.1 and Postgres 18 (PGlite 0.5.14).
#
# Behavior: `copy … to … csv` writes NULL as nothing, and an empty text as "". DuckDB's read_csv takes both for NULL, unless allow_quoted_nulls is
# false. Arrays, which Postgres writes as {a,b}, are no lists for DuckDB: the cast is an error.
#
# Who meets it: Who moves a copy to DuckDB by CSV, because its Postgres extension has to be downloaded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 @duckdb/node-api@1.5.6-r.1 >/dev/null
cat >main.mjs <<'JS'
import { writeFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { PGlite } from "@electric-sql/pglite";

const db = await PGlite.create();
await db.exec("create table t (id int, a text, tags text[]); insert into t values (1, '', '{a,b}'), (2, null, null), (3, 'x', '{}')");
const { blob } = await db.query("copy (select * from t order by id) to '/dev/blob' (format csv, header)");
const csv = await blob.text();
console.log(csv.trim());
writeFileSync("t.csv", csv);
await db.close();
const connection = await (await DuckDBInstance.create(":memory:")).connect();
for (const options of ["", ", allow_quoted_nulls = false"]) {
  const { length } = (await connection.runAndReadAll(`select id from read_csv('t.csv'${options}) where a is null`)).getRows();
  console.log(`nulls${options}: ${length}`);
}
await connection.run("select tags::varchar[] from 't.csv'").catch((error) => console.log(error.message.split("\n")[0]));
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
id,a,tags
1,"","{a,b}"
2,,
3,x,{}
nulls: 2
nulls, allow_quoted_nulls = false: 1
Conversion Error: Type VARCHAR with value '{a,b}' can't be cast to the destination type VARCHAR[] when casting from source column tags
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
