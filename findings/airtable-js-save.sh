#!/usr/bin/env bash
# airtable.js' record.save() empties every field that the record was read without.
#
# airtable 0.12.2.
#
# Behavior: save() sends all fields that the record has with PUT, by which Airtable empties the others: a record of a selection with `fields` loses all that
# was not selected. If all fields were selected, save() is refused where one is computed. update() and patchUpdate() change only what they are given.
#
# Who meets it: Programs that read few fields to save calls or memory, change one, and save the record. A copy of the base shows the empty fields as an edit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable@0.12.2 >/dev/null
cat >main.mjs <<'JS'
import { createServer } from "node:http";
import Airtable from "airtable";

const stored = { Name: "Call", Status: "Open", Notes: "Ask for Ann", Amount: 12.5 };
/** Answers as Airtable's API does: a PATCH changes the fields that it has, a PUT empties the others. */
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const { fields } = body ? JSON.parse(body) : {};
    if (fields) {
      console.log(request.method, JSON.stringify(fields));
      if (request.method === "PUT") for (const name of Object.keys(stored)) delete stored[name];
      Object.assign(stored, fields);
    }
    const wanted = new URL(request.url, "http://a").searchParams.getAll("fields[]");
    const shown = Object.fromEntries(Object.entries(stored).filter(([name]) => wanted.length === 0 || wanted.includes(name)));
    const record = { id: "rec00000000000000", createdTime: "2026-01-01T00:00:00.000Z", fields: shown };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(fields ? record : { records: [record] }));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const tasks = new Airtable({ apiKey: "keyX", endpointUrl: `http://127.0.0.1:${server.address().port}` }).base("appBase0000000000")("Tasks");
const [record] = await tasks.select({ fields: ["Status"] }).firstPage();
await record.patchUpdate({ Status: "Begun" });
console.log("after patchUpdate:", JSON.stringify(stored));
const [again] = await tasks.select({ fields: ["Status"] }).firstPage();
again.set("Status", "Done");
await again.save();
console.log("after save:", JSON.stringify(stored));
server.close();
JS
seen=$(node --no-deprecation main.mjs)
expected=$(
  cat <<'END'
PATCH {"Status":"Begun"}
after patchUpdate: {"Name":"Call","Status":"Begun","Notes":"Ask for Ann","Amount":12.5}
PUT {"Status":"Done"}
after save: {"Status":"Done"}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
