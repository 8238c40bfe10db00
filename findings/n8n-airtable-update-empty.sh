#!/usr/bin/env bash
# n8n's Airtable node updates the first record whose match field is empty, if the input lacks the field.
#
# n8n-nodes-base 2.41.2 with n8n-workflow 2.41.0.
#
# Behavior: "Update" with a field to match on reads all records, and compares by ===. Airtable leaves out empty fields, so that an item without the field
# matches each record in which it is empty: undefined is undefined. The first of them is overwritten, or with "Update All Matches" all are. An item with null,
# or with an empty text, matches no record, which is an error.
#
# Who meets it: Workflows that write to Airtable what another source returns, if that leaves out what is empty, as Airtable itself does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts n8n-workflow@2.41.0 lodash@4.17.21 >/dev/null
# Its other nodes need hundreds of packages.
npm pack --silent n8n-nodes-base@2.41.2 >/dev/null
mkdir node_modules/n8n-nodes-base
tar xzf n8n-nodes-base-2.41.2.tgz -C node_modules/n8n-nodes-base --strip-components=1
cat >main.mjs <<'JS'
import { createRequire } from "node:module";

const { execute } = createRequire(import.meta.url)("n8n-nodes-base/dist/nodes/Airtable/v2/actions/record/update.operation.js");

/** Runs the node for one item, with what n8n gives to it. Answers as Airtable's API does. */
async function update(item, updateAllMatches) {
  const records = [
    { id: "rec1", fields: { Name: "Ann", Email: "ann@example.org" } },
    { id: "rec2", fields: { Name: "Bob" } },
    { id: "rec3", fields: { Name: "Cleo" } },
  ];
  const columns = { "columns.mappingMode": "autoMapInputData", "columns.matchingColumns": ["Email"] };
  const parameters = { ...columns, options: { updateAllMatches }, authentication: "token" };
  const changed = [];
  const node = {
    getNodeParameter: (name) => parameters[name],
    getNode: () => ({ typeVersion: 2.2 }),
    continueOnFail: () => false,
    helpers: {
      constructExecutionMetaData: (data) => data,
      async requestWithAuthentication(_authentication, { method, body }) {
        if (method === "GET") return { records };
        for (const { id, fields } of body.records) {
          const record = records.find((one) => one.id === id);
          changed.push(`${id} (${record.fields.Name}) ${JSON.stringify(fields)}`);
          record.fields = { ...record.fields, ...fields };
        }
        return body;
      },
    },
  };
  const error = await execute.call(node, [{ json: item }], "app1", "tbl1").then(() => {}, ({ message }) => message);
  console.log(JSON.stringify(item), updateAllMatches ? "all matches" : "one match", "->", error ?? changed.join(", "));
}
await update({ Email: "ann@example.org", Status: "Paid" });
await update({ Email: "dan@example.org", Status: "Paid" });
await update({ Email: null, Status: "Paid" });
await update({ Email: "", Status: "Paid" });
await update({ Status: "Paid" });
await update({ Status: "Paid" }, true);
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
{"Email":"ann@example.org","Status":"Paid"} one match -> rec1 (Ann) {"Email":"ann@example.org","Status":"Paid"}
{"Email":"dan@example.org","Status":"Paid"} one match -> Record matching provided keys was not found
{"Email":null,"Status":"Paid"} one match -> Record matching provided keys was not found
{"Email":"","Status":"Paid"} one match -> Record matching provided keys was not found
{"Status":"Paid"} one match -> rec2 (Bob) {"Status":"Paid"}
{"Status":"Paid"} all matches -> rec2 (Bob) {"Status":"Paid"}, rec3 (Cleo) {"Status":"Paid"}
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
