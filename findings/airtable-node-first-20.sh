#!/usr/bin/env bash
# airtable-node lists the first 20 records of a table, and nothing says that there are more.
#
# airtable-node 0.1.20.
#
# Behavior: Without parameters, list() sends maxRecords=20. Airtable then returns 20 records and no offset, as at the end of a table.
#
# Who meets it: Programs that export a base, or compare it with SQL.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable-node@0.1.20 >/dev/null
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
import Airtable from "airtable-node";

const createdTime = "2026-01-01T00:00:00.000Z";
const records = Array.from({ length: 50 }, (_, nth) => ({ id: `rec${String(nth).padStart(14, "0")}`, createdTime, fields: {} }));
const server = await airtable(({ pathname, searchParams }) => {
  console.log(pathname, searchParams.toString());
  return { records: records.slice(0, Number(searchParams.get("maxRecords") ?? 100)) };
});
process.env.HERE = `http://127.0.0.1:${server.address().port}`;
await import("./redirect.mjs");
const answer = await new Airtable({ apiKey: "patX" }).base("appBase0000000000").table("Tasks").list();
console.log(answer.records.length, "records, offset", answer.offset);
server.close();
JS
seen=$(node main.mjs | sed '/^$/d')
expected=$(
  cat <<'END'
/v0/appBase0000000000/Tasks maxRecords=20&offset=
20 records, offset undefined
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
