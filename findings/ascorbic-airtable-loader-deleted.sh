#!/usr/bin/env bash
# Records that were deleted in Airtable stay on the pages that @ascorbic/airtable-loader builds.
#
# @ascorbic/airtable-loader 1.0.5 with astro 5.18.2.
#
# Behavior: Astro keeps what a loader has stored for the next build, and leaves it to the loader to remove what is gone. This one only adds and replaces. So
# a record that was deleted, or that a view or a formula (queryParams) no longer selects, is on every later page, until node_modules/.astro/data-store.json is
# deleted. A build without that file has the right pages, so that of the CI may differ from that of a server that keeps its folders.
#
# Who meets it: Sites built from a view such as "Published", on a machine or a service that caches node_modules.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts astro@5.18.2 @ascorbic/airtable-loader@1.0.5 >/dev/null
cat >main.mjs <<'JS'
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const createdTime = "2026-01-01T00:00:00.000Z";
let names = ["Call", "Write"];
/** Answers as Airtable's API does. */
const server = createServer((_, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ records: names.map((Name) => ({ id: `rec${Name.padEnd(14, "0")}`, createdTime, fields: { Name } })) }));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

mkdirSync("src/pages", { recursive: true });
writeFileSync(
  "src/content.config.ts",
  `import { defineCollection, z } from "astro:content";
import { airtableLoader } from "@ascorbic/airtable-loader";

const loader = airtableLoader({ token: "patX", base: "appBase0000000000", table: "Tasks", queryParams: { view: "Published" } });
export const collections = { tasks: defineCollection({ loader, schema: z.object({ Name: z.string() }) }) };
`,
);
writeFileSync(
  "src/pages/index.astro",
  `---
import { getCollection } from "astro:content";
const tasks = await getCollection("tasks");
---
<p>{tasks.map(({ data }) => data.Name).sort().join(", ")}</p>
`,
);
const env = { ...process.env, AIRTABLE_ENDPOINT_URL: `http://127.0.0.1:${server.address().port}`, ASTRO_TELEMETRY_DISABLED: "1" };
async function build(when) {
  const [code] = await once(spawn(process.execPath, ["node_modules/astro/astro.js", "build"], { env, stdio: "ignore" }), "exit");
  console.log(`${when}: exit code ${code}, the page has ${readFileSync("dist/index.html", "utf8").match(/<p>(.*)<\/p>/)[1]}`);
}
await build("Airtable has Call, Write");
names = ["Call"];
await build("Airtable has Call");
rmSync("node_modules/.astro", { recursive: true });
await build("without the store");
server.close();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
Airtable has Call, Write: exit code 0, the page has Call, Write
Airtable has Call: exit code 0, the page has Call, Write
without the store: exit code 0, the page has Call
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
