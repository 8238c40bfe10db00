#!/usr/bin/env bash
# yaml writes a line of blanks as a backslash when it folds a double-quoted text.
#
# yaml 2.9.1.
#
# Behavior: With defaultStringType QUOTE_DOUBLE, a long text with a line of blanks is read back with a backslash as that line: the library does not
# read what it wrote. Another library reads the backslash, too, because it is in the file.
#
# Who meets it: Generators of sources.yml for dbt, whose descriptions are texts of people.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts yaml@2.9.1 >/dev/null
cat >main.mjs <<'JS'
import { parse, stringify } from "yaml";

const words = "word ".repeat(20);
const text = `${words}\n \n${words}`;
for (const lineWidth of [80, 0]) {
  const read = parse(stringify({ text }, { defaultStringType: "QUOTE_DOUBLE", lineWidth })).text;
  console.log(lineWidth, read === text, JSON.stringify(text.split("\n")[1]), JSON.stringify(read.split("\n")[1]));
}
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
80 false " " "\\"
0 false " " "\\"
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
