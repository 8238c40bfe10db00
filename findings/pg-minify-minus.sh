#!/usr/bin/env bash
# pg-minify makes a comment of a minus before a negative number, and takes the indentation out of texts.
#
# pg-minify 1.8.0, which pg-promise's QueryFile uses with `minify`, and Postgres 18 (PGlite 0.5.14).
#
# Behavior: With `compress`, 0 - -5 becomes 0--5, of which Postgres reads the 0, as the rest of the query is a comment now; 0 - (-5) stays. Without it, too, a
# text of several lines loses the blanks around its line breaks, and its backslashes become escapes, because it gets the prefix E.
#
# Who meets it: Queries in files that compare with negative amounts, or with long texts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 pg-minify@1.8.0 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import minify from "pg-minify";

const db = await PGlite.create();
const value = async (sql) => JSON.stringify(Object.values((await db.query(sql)).rows[0])[0]);
const amounts = "select count(*) from (values (3), (7)) as items (amount) where amount > 0 - -5";
const text = "select 'Copy:\n  - C:\\tasks\n  - milk'";
for (const [sql, options] of [[amounts], [amounts, { compress: true }], [amounts.replace("-5", "(-5)"), { compress: true }], [text]]) {
  const small = minify(sql, options);
  console.log(small);
  console.log("  returns", await value(small), "instead of", await value(sql));
}
await db.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
select count(*) from (values (3), (7)) as items (amount) where amount > 0 - -5
  returns 1 instead of 1
select count(*)from(values(3),(7))as items(amount)where amount>0--5
  returns 2 instead of 1
select count(*)from(values(3),(7))as items(amount)where amount>0-(-5)
  returns 1 instead of 1
select E'Copy:\n- C:\tasks\n- milk'
  returns "Copy:\n- C:\tasks\n- milk" instead of "Copy:\n  - C:\\tasks\n  - milk"
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
