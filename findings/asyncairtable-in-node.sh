#!/usr/bin/env bash
# asyncairtable cannot be loaded by Node.
#
# asyncairtable 2.3.1.
#
# Behavior: Its package is a module whose files import each other without an extension, which Node does not resolve: import and require both fail.
# Bundlers for browsers accept it.
#
# Who meets it: Programs on a server that move to this client from airtable.js.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts asyncairtable@2.3.1 >/dev/null
cat >main.mjs <<'JS'
import { createRequire } from "node:module";

const told = (error) => console.log(error.code, /asyncairtable\/lib\/\w+/.exec(error.message)[0]);
await import("asyncairtable").then(() => console.log("loaded"), told);
try {
  createRequire(import.meta.url)("asyncairtable");
  console.log("loaded");
} catch (error) {
  told(error);
}
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
ERR_MODULE_NOT_FOUND asyncairtable/lib/buildOpts
ERR_MODULE_NOT_FOUND asyncairtable/lib/buildOpts
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
