#!/usr/bin/env bash
# airtable-plus ignores a transform that leaves no record, so that updateWhere changes all of them.
#
# airtable-plus 1.0.4.
#
# Behavior: read() leaves out the records for which transform returns nothing. If it returns nothing for any record, read() returns all of them, as if there
# were no transform. updateWhere, replaceWhere and deleteWhere read that way, and write to what they have read.
#
# Who meets it: Programs that select records by code, because a formula cannot, on the day when none is left.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable-plus@1.0.4 >/dev/null
cat >main.mjs <<'JS'
import { createServer } from "node:http";

/** Answers as Airtable's API does. */
function airtable(answer) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer(new URL(request.url, "http://a"), body && JSON.parse(body))));
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

const createdTime = "2026-01-01T00:00:00.000Z";
const records = ["Call", "Write"].map((Name, nth) => ({ id: `rec${nth}0000000000000`, createdTime, fields: { Name, Done: true } }));
const server = await airtable(({ pathname }, body) => {
  if (!body) return { records };
  console.log("changed", pathname.split("/").pop(), JSON.stringify(body.fields));
  return { id: pathname.split("/").pop(), createdTime, fields: body.fields };
});
process.env.AIRTABLE_ENDPOINT_URL = `http://127.0.0.1:${server.address().port}`;
const { default: AirtablePlus } = await import("airtable-plus");
const tasks = new AirtablePlus({ apiKey: "keyX", baseID: "appBase0000000000", tableName: "Tasks" });
const only = (test) => ({ transform: (record) => (test(record.fields) ? record : undefined) });
const names = (found) => found.map(({ fields }) => fields.Name).join(", ");
console.log("named Call:", names(await tasks.read({}, only(({ Name }) => Name === "Call"))));
console.log("not done:", names(await tasks.read({}, only(({ Done }) => !Done))));
await tasks.updateWhere("{Name} != ''", { Late: true }, only(({ Done }) => !Done));
server.close();
JS
seen=$(node --no-deprecation main.mjs)
expected=$(
  cat <<'END'
named Call: Call
not done: Call, Write
changed rec00000000000000 {"Late":true}
changed rec10000000000000 {"Late":true}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
