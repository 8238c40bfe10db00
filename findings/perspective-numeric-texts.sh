#!/usr/bin/env bash
# Perspective makes one number of all barcodes, and 0 of texts, in a column whose first values look like numbers.
#
# @perspective-dev/client 5.5.1; @finos/perspective 3.8.0 is its former name.
#
# Behavior: As documented, it infers the types of the columns of JSON. It takes texts of digits for whole numbers of 32 bits: each barcode of 13 digits is
# 2147483647. If a later value is a text, the column is text, but the values before it have already changed, and have lost their leading zeros, too. After a
# text with a decimal point, the column is of numbers, and any other text is 0 or the number that it begins with. There is no error. If the first value has
# letters, or if the table is made of a schema, all texts are as they were.
#
# Who meets it: Dashboards over rows of Airtable or Postgres: barcodes, postal codes and telephone numbers are texts of digits, and node-postgres returns
# numeric as text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @perspective-dev/client@5.5.1 >/dev/null
cat >main.mjs <<'JS'
import perspective from "@perspective-dev/client";

async function show(name, texts, data = texts.map((value) => ({ value }))) {
  const table = await perspective.table(data);
  if (!Array.isArray(data)) await table.update(texts.map((value) => ({ value })));
  const view = await table.view();
  const read = (await view.to_json()).map(({ value }) => value);
  console.log(`${name}: ${JSON.stringify(texts)} is ${(await table.schema()).value} ${JSON.stringify(read)}`);
}
const barcodes = ["4006381333931", "5901234123457"];
await show("barcodes", barcodes);
await show("one with letters", [...barcodes, "B-12"]);
await show("letters first", ["B-12", ...barcodes]);
await show("postal codes", ["02139", "EC1A 1BB"]);
await show("results of a formula", ["12.50", "n/a", "1,200"]);
await show("with a schema", barcodes, { value: "string" });
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
barcodes: ["4006381333931","5901234123457"] is integer [2147483647,2147483647]
one with letters: ["4006381333931","5901234123457","B-12"] is string ["2147483647","2147483647","B-12"]
letters first: ["B-12","4006381333931","5901234123457"] is string ["B-12","4006381333931","5901234123457"]
postal codes: ["02139","EC1A 1BB"] is string ["2139","EC1A 1BB"]
results of a formula: ["12.50","n/a","1,200"] is float [12.5,0,1]
with a schema: ["4006381333931","5901234123457"] is string ["4006381333931","5901234123457"]
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
