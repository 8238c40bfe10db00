#!/usr/bin/env bash
# gatsby-source-airtable gives a field no media type if its name has a space, so that its Markdown stays as it is.
#
# gatsby-source-airtable 2.4.4 with gatsby-source-filesystem 5.16.0 and gatsby-transformer-remark 6.16.0.
#
# Behavior: Its `mapping` names fields with underscores for spaces, and it warns about other names. It looks the type up by the name with spaces, finds none,
# and gatsby-transformer-remark, which goes by the type, leaves the field out. A field without spaces is transformed.
#
# Who meets it: Sites that show long texts of a base, which Airtable returns as Markdown.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps gatsby-source-airtable@2.4.4 gatsby-source-filesystem@5.16.0 \
  gatsby-transformer-remark@6.16.0 >/dev/null
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
const fields = { Notes: "*one*", "Long Notes": "*two*" };
const server = await airtable(() => ({ records: [{ id: "recA0000000000000", createdTime, fields }] }));
process.env.AIRTABLE_ENDPOINT_URL = `http://127.0.0.1:${server.address().port}`;
const { default: plugin } = await import("gatsby-source-airtable/gatsby-node.js");
const nodes = [];
const gatsby = { actions: { createNode: (node) => nodes.push(node), setPluginStatus() {} }, createNodeId: (text) => text };
const mapping = { Notes: "text/markdown", Long_Notes: "text/markdown" };
await plugin.sourceNodes(gatsby, { apiKey: "patX", tables: [{ baseId: "appBase0000000000", tableName: "Tasks", mapping }] });
const { default: remark } = await import("gatsby-transformer-remark/on-node-create.js");
for (const node of nodes.slice(1)) {
  const { content, mediaType } = node.internal;
  console.log(node.id.split("000_").pop(), content, mediaType, "transformed:", remark.shouldOnCreateNode({ node }));
}
server.close();
JS
seen=$(node --no-deprecation main.mjs | sed '/^$/d; /fetch all/d')
expected=$(
  cat <<'END'
Notes *one* text/markdown transformed: true
Long_Notes *two* undefined transformed: false
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
