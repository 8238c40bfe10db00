#!/usr/bin/env bash
# @qualifyze/airtable-formulator refuses fields whose names contain a brace.
#
# @qualifyze/airtable-formulator 1.3.1, which airtable-ts-formula uses.
#
# Behavior: Airtable allows braces in names of fields; pyairtable, for one, writes the closing one with a backslash, {Size {m\}}. This library throws for
# such a name, and cannot read that formula.
#
# Who meets it: Programs that filter records of bases whose fields are named by people.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @qualifyze/airtable-formulator@1.3.1 >/dev/null
cat >main.mjs <<'JS'
import formulator from "@qualifyze/airtable-formulator";

const attempt = (name, work) => {
  try {
    console.log(name, JSON.stringify(work()));
  } catch (error) {
    console.log(name, error.message.split("\n")[0]);
  }
};
attempt("compile", () => formulator.compile(["=", { field: "Size" }, 1]));
attempt("compile", () => formulator.compile(["=", { field: "Size {m}" }, 1]));
attempt("parse", () => formulator.parse("{Size}=1"));
attempt("parse", () => formulator.parse("{Size {m\\}}=1"));
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
compile "{Size}=1"
compile Invalid field name: 'Size {m}'
parse ["=",{"field":"Size"},1]
parse Syntax error at position 6 for bracedReference:
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
