#!/usr/bin/env bash
# airtable-ts-codegen types a lookup by the type of one value, and airtable-ts then refuses records with two.
#
# airtable-ts-codegen 2.1.0 and airtable-ts 1.10.0.
#
# Behavior: The metadata of a lookup of numbers has the result type number, and the generated table says `number | null`. Airtable returns lookups as
# lists: one value is accepted, and with two, reading the whole table fails.
#
# Who meets it: Programs that read a base next to its copy, with generated types.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable-ts-codegen@2.1.0 airtable-ts@1.10.0 >/dev/null
cat >redirect.mjs <<'JS'
// Sends calls of Airtable's API to the server of this script.
import https from "node:https";
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";

const { fetch } = globalThis;
const here = (url) => String(url).replace("https://api.airtable.com", process.env.HERE);
globalThis.fetch = (input, init) => fetch(here(input?.url ?? input), init);
https.request = (first, ...rest) => {
  const port = Number(new URL(process.env.HERE).port);
  if (typeof first === "string" || first instanceof URL) return http.request(here(first), ...rest);
  const { agent, agents, host, defaultPort, ...options } = first;
  return http.request({ ...options, protocol: "http:", hostname: "127.0.0.1", port }, ...rest);
};
https.get = (...words) => https.request(...words).end();
syncBuiltinESMExports();
JS
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
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { AirtableTs } from "airtable-ts";

const result = { type: "number", options: { precision: 1 } };
const options = { isValid: true, recordLinkFieldId: "fldLink0000000000", fieldIdInLinkedTable: "fldOther000000000", result };
const fields = [
  { id: "fldName0000000000", name: "Name", type: "singleLineText" },
  { id: "fldLook0000000000", name: "Amounts", type: "multipleLookupValues", options },
];
const tables = [{ id: "tblTasks000000000", name: "Tasks", primaryFieldId: fields[0].id, fields, views: [] }];
let amounts = [1.5];
const record = () => ({ id: "recA0000000000000", createdTime: "2026-01-01T00:00:00.000Z", fields: { Name: "a", Amounts: amounts } });
const server = await airtable(({ pathname }) => (pathname.includes("/meta/") ? { tables } : { records: [record()] }));
const here = `http://127.0.0.1:${server.address().port}`;
const env = { ...process.env, HERE: here, AIRTABLE_API_KEY: "patX", AIRTABLE_BASE_ID: "appBase0000000000", NODE_OPTIONS: "--import=./redirect.mjs" };
const child = spawn("npx", ["airtable-ts-codegen"], { env, stdio: "ignore" });
await new Promise((resolve) => child.on("exit", resolve));
const type = /amounts: '([^']+)'/.exec(readFileSync("appBase0000000000.ts", "utf8").split("schema:")[1])[1];
console.log("type", type);
const db = new AirtableTs({ apiKey: "patX", endpointUrl: here });
const table = {
  ...{ name: "Tasks", baseId: "appBase0000000000", tableId: "tblTasks000000000" },
  ...{ mappings: { amounts: "fldLook0000000000" }, schema: { amounts: type } },
};
for (amounts of [[1.5], [1.5, 2]]) {
  const rows = await db.scan(table).then(JSON.stringify, (error) => error.message.replace(/^.*Cannot/, "Cannot").replace(/ Suggestion.*/, ""));
  console.log(JSON.stringify(amounts), rows);
}
server.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
type number | null
[1.5] [{"amounts":1.5,"id":"recA0000000000000"}]
[1.5,2] Cannot convert array with 2 entries from airtable type 'multipleLookupValues to TypeScript type 'number | null'.
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
