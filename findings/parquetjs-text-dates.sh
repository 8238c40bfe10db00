#!/usr/bin/env bash
# parquetjs writes a day that is a text as a day of 1975, and a JSON list of one value as that value.
#
# @dsnp/parquetjs 1.8.9; parquets 0.10.10 and parquetjs-lite 0.8.7 have the same origin.
#
# Behavior: For DATE and TIMESTAMP_MILLIS, it takes the leading digits of a text as a number: 2026-07-01 is day 2026 after 1970, or millisecond 2026. A list in
# a JSON column is taken for repeated values: one value is written without its list, and two are an error. A name with a comma is an error, too, as that
# separates the parts of a path. A Date, and JSON inside of an object, arrive.
#
# Who meets it: Exports of a copy, because postgres.js and node-postgres return days as texts if they are set to keep them from shifting.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @dsnp/parquetjs@1.8.9 >/dev/null
cat >main.mjs <<'JS'
import parquet from "@dsnp/parquetjs";

/** What a file of one row returns for the value. */
async function roundTrip(name, type, value) {
  const writer = await parquet.ParquetWriter.openFile(new parquet.ParquetSchema({ [name]: { type } }), "one.parquet");
  await writer.appendRow({ [name]: value });
  await writer.close();
  const reader = await parquet.ParquetReader.openFile("one.parquet");
  const row = await reader.getCursor().next();
  await reader.close();
  return JSON.stringify(row[name]);
}
for (const [name, type, value] of [
  ["due", "DATE", "2026-07-01"],
  ["due", "DATE", new Date("2026-07-01")],
  ["at", "TIMESTAMP_MILLIS", "2026-07-01T10:00:00Z"],
  ["links", "JSON", ["recA0000000000000"]],
  ["links", "JSON", ["recA0000000000000", "recB0000000000000"]],
  ["links", "JSON", { ids: ["recA0000000000000"] }],
  ["Name, first", "UTF8", "Ada"],
]) {
  const answer = await roundTrip(name, type, value).catch((error) => `error: ${error.message ?? error}`);
  console.log(type, typeof value, JSON.stringify(value), "=>", answer);
}
JS
seen=$(node --no-deprecation main.mjs)
expected=$(
  cat <<'END'
DATE string "2026-07-01" => "1975-07-20T00:00:00.000Z"
DATE object "2026-07-01T00:00:00.000Z" => "2026-07-01T00:00:00.000Z"
TIMESTAMP_MILLIS string "2026-07-01T10:00:00Z" => "1970-01-01T00:00:02.026Z"
JSON object ["recA0000000000000"] => "recA0000000000000"
JSON object ["recA0000000000000","recB0000000000000"] => error: too many values for field: links
JSON object {"ids":["recA0000000000000"]} => {"ids":["recA0000000000000"]}
UTF8 string "Ada" => error: Cannot read properties of undefined (reading 'fields')
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
