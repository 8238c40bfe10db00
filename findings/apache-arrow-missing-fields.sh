#!/usr/bin/env bash
# apache-arrow makes values of fields that a record does not have: an empty text, NaN, and false.
#
# apache-arrow 21.2.0.
#
# Behavior: In what tableFromJSON gets, null stays null, but a property that is missing becomes "", NaN, or false, and is not counted as null. A file of the
# table (tableToIPC) has these values, too. The first value of a property sets the type of its column: a later text in a column of numbers is NaN, and the
# texts of a list whose column began with an empty list are null. There is no error, except for times.
#
# Who meets it: Programs that make Arrow or Parquet files of what Airtable's API returns, which leaves out every empty field: one record without a rating makes
# the sum and the average of the ratings NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts apache-arrow@21.2.0 >/dev/null
cat >main.mjs <<'JS'
import { tableFromIPC, tableFromJSON, tableToIPC } from "apache-arrow";

function show(name, records) {
  const table = tableFromIPC(tableToIPC(tableFromJSON(records)));
  console.log(name);
  for (const { name: field, type } of table.schema.fields) {
    const column = table.getChild(field);
    console.log(`  ${field} (${type}):`, [...column].map((value) => (value?.toJSON ? value.toJSON() : value)), `${column.nullCount} null`);
  }
}
show("as Airtable's API returns records", [{ Name: "Call", Rating: 5, Approved: true }, {}]);
show("with null", [
  { Name: "Call", Rating: 5, Approved: true },
  { Name: null, Rating: null, Approved: null },
]);
show("a formula with numbers and texts", [{ Result: 12.5 }, { Result: "n/a" }]);
show("an empty list first", [{ Tags: [] }, { Tags: ["red"] }]);
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
as Airtable's API returns records
  Name (Dictionary<Int32, Utf8>): [ 'Call', '' ] 0 null
  Rating (Float64): [ 5, NaN ] 0 null
  Approved (Bool): [ true, false ] 0 null
with null
  Name (Dictionary<Int32, Utf8>): [ 'Call', null ] 1 null
  Rating (Float64): [ 5, null ] 1 null
  Approved (Bool): [ true, null ] 1 null
a formula with numbers and texts
  Result (Float64): [ 12.5, NaN ] 0 null
an empty list first
  Tags (List<Null>): [ [], [ null ] ] 0 null
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
