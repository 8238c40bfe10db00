#!/usr/bin/env bash
# airtable-ts cuts times to seconds when it reads them, and returns a day as a time.
#
# airtable-ts 1.10.0.
#
# Behavior: It writes 1782864000.75 as 00:00:00.750, and reads that back as 1782864000: the time before the write is another one than after. A date
# field that is read as text is 2026-07-01T00:00:00.000Z, although Airtable returned 2026-07-01.
#
# Who meets it: Programs that compare what they wrote with what they read, or with SQL.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts airtable-ts@1.10.0 >/dev/null
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
import { AirtableTs } from "airtable-ts";

const dateFormat = { name: "iso", format: "YYYY-MM-DD" };
const fields = [
  { id: "fldAt000000000000", name: "At", type: "dateTime", options: { timeZone: "utc", dateFormat, timeFormat: { name: "24hour", format: "HH:mm" } } },
  { id: "fldDay00000000000", name: "Day", type: "date", options: { dateFormat } },
];
const tables = [{ id: "tblTasks000000000", name: "Tasks", primaryFieldId: fields[0].id, fields, views: [] }];
const named = (values) => Object.fromEntries(fields.filter(({ id }) => id in values).map(({ id, name }) => [name, values[id]]));
const createdTime = "2026-01-01T00:00:00.000Z";
const server = await airtable(({ pathname }, body) => {
  if (pathname.includes("/meta/")) return { tables };
  if (!body) return { records: [{ id: "recA0000000000000", createdTime, fields: { Day: "2026-07-01" } }] };
  console.log("sent", JSON.stringify(body.fields));
  return { id: "recB0000000000000", createdTime, fields: named(body.fields) };
});
const db = new AirtableTs({ apiKey: "patX", endpointUrl: `http://127.0.0.1:${server.address().port}` });
const table = { name: "Tasks", baseId: "appBase0000000000", tableId: "tblTasks000000000" };
const times = { ...table, mappings: { at: "fldAt000000000000" }, schema: { at: "number | null" } };
console.log("read", (await db.insert(times, { at: 1782864000.75 })).at);
const days = { ...table, mappings: { day: "fldDay00000000000" }, schema: { day: "string | null" } };
console.log("day", (await db.scan(days))[0].day);
server.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
sent {"fldAt000000000000":"2026-07-01T00:00:00.750Z"}
read 1782864000
day 2026-07-01T00:00:00.000Z
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
