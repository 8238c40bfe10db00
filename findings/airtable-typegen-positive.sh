#!/usr/bin/env bash
# airtable-typegen's Zod schemas refuse zero, negative numbers, and empty formulas.
#
# airtable-typegen 0.3.0 with zod 3.25.76.
#
# Behavior: A number field becomes z.number().positive(), although Airtable's metadata says nothing of a sign, and 0 is a usual value. Formulas and lookups
# are required, although Airtable leaves empty ones out of a record.
#
# Who meets it: Programs that check records of a base before they store them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable-typegen@0.3.0 zod@3.25.76 typescript@5.9.3 >/dev/null
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
import { readFileSync, writeFileSync } from "node:fs";
import ts from "typescript";

const formula = { isValid: true, formula: "1", referencedFieldIds: [], result: { type: "number", options: { precision: 0 } } };
const fields = [
  { id: "fldName0000000000", name: "Name", type: "singleLineText" },
  { id: "fldAmount00000000", name: "Amount", type: "number", options: { precision: 2 } },
  { id: "fldScore000000000", name: "Score", type: "formula", options: formula },
];
const tables = [{ id: "tblTasks000000000", name: "Tasks", primaryFieldId: fields[0].id, fields, views: [] }];
const bases = [{ id: "appBase0000000000", name: "Base", permissionLevel: "read" }];
const server = await airtable(({ pathname }) => (pathname.endsWith("/tables") ? { tables } : { bases }));
const env = {
  ...{ ...process.env, HERE: `http://127.0.0.1:${server.address().port}`, AIRTABLE_TYPEGEN_ACCESS_TOKEN: "patX" },
  NODE_OPTIONS: "--import=./redirect.mjs",
};
const child = spawn("npx", ["airtable-typegen", "appBase0000000000", "-z", "-o", "schemas.ts"], { env, stdio: "ignore" });
await new Promise((resolve) => child.on("exit", resolve));
server.close();
const text = readFileSync("schemas.ts", "utf8");
console.log(text.split("\n").filter((line) => /Amount|Score/.test(line)).map((line) => line.trim()).join("\n"));
writeFileSync("schemas.mjs", ts.transpile(text, { module: "ESNext", target: "ES2022" }));
const { TasksSchema } = await import("./schemas.mjs");
for (const record of [{ Amount: 1, Score: 1 }, { Amount: 0, Score: 1 }, { Amount: -5, Score: 1 }, { Amount: 1 }]) {
  const { success, error } = TasksSchema.safeParse(record);
  console.log(JSON.stringify(record), success ? "accepted" : error.issues.map(({ path, code }) => `${path} ${code}`).join());
}
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
'Amount': z.number().positive().optional(),
'Score': z.string().or(z.number()),
{"Amount":1,"Score":1} accepted
{"Amount":0,"Score":1} Amount too_small
{"Amount":-5,"Score":1} Amount too_small
{"Amount":1} Score invalid_union
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
