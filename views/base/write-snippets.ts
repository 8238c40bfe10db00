/**
 * Programs that create a record through the proxy, change it, and read it with SQL. The API key is read from
 * AIRTABLE_API_KEY, the database's URL from DATABASE_URL.
 */
import { qualifiedName, readableName } from "../../core/exports";
import type { TableSpec } from "../../core/replica";
import type { FieldType } from "../../core/source";
import { shellWord } from "./snippets";

export interface WriteExample {
  /** Of the record, with the proxy's address. */
  endpoint: string;
  baseId: string;
  /** Names in the source. */
  table: string;
  field: string;
  created: string;
  updated: string;
  /** The query for one record, up to its id. */
  sql: string;
}

/** Types of fields to which any text can be written. */
const WRITABLE: ReadonlySet<FieldType> = new Set(["text", "long_text", "rich_text"]);

/** Returns null if no table has a field for text. */
export function writeExampleOf(
  base: { endpoint: string; baseId: string; schema: string },
  tables: TableSpec[],
): WriteExample | null {
  for (const { name, sourceName, columns } of tables) {
    const column = columns.find(({ type }) => WRITABLE.has(type));
    if (!column) continue;
    return {
      endpoint: base.endpoint,
      baseId: base.baseId,
      table: sourceName,
      field: column.sourceName,
      created: "Hello from the proxy",
      updated: "Changed through the proxy",
      sql: `select id, ${readableName(column.name)} from ${qualifiedName(base.schema, name)} where id = `,
    };
  }
  return null;
}

export function curlWrite({ endpoint, baseId, table, field, created, updated, sql }: WriteExample): string {
  const records = `${endpoint}/v0/${baseId}/${encodeURIComponent(table)}`;
  const head = `-H "Authorization: Bearer $AIRTABLE_API_KEY" -H 'Content-Type: application/json'`;
  const body = (value: string) => shellWord(JSON.stringify({ fields: { [field]: value } }));
  return `# Create
RECORD=$(curl -s -X POST ${shellWord(records)} \\
  ${head} \\
  -d ${body(created)} | sed 's/^{"id":"\\([^"]*\\)".*/\\1/')

# Update
curl -s -X PATCH ${shellWord(`${records}/`)}"$RECORD" \\
  ${head} \\
  -d ${body(updated)}

# The next SELECT shows it
echo ${shellWord(`${sql}:'id'`)} | psql "$DATABASE_URL" -v id="$RECORD"`;
}

export function airtableJsWrite(example: WriteExample): string {
  const { endpoint, baseId, table, field, created, updated, sql } = example;
  const text = (value: string) => JSON.stringify(value);
  return `import Airtable from "airtable";
import postgres from "postgres";

const airtable = new Airtable({
  endpointUrl: ${text(endpoint)},
  apiKey: process.env.AIRTABLE_API_KEY,
});
const table = airtable.base(${text(baseId)})(${text(table)});
const sql = postgres(process.env.DATABASE_URL);

const { id } = await table.create({ ${text(field)}: ${text(created)} });
await table.update(id, { ${text(field)}: ${text(updated)} });

// The next SELECT shows it
console.log(await sql\`${sql.replaceAll(/[`\\$]/g, "\\$&")}\${id}\`);
await sql.end();`;
}

export function pythonWrite(example: WriteExample): string {
  const { endpoint, baseId, table, field, created, updated, sql } = example;
  const text = (value: string) => JSON.stringify(value);
  return `import os
import psycopg
from pyairtable import Api

api = Api(os.environ["AIRTABLE_API_KEY"], endpoint_url=${text(endpoint)})
table = api.table(${text(baseId)}, ${text(table)})

record = table.create({${text(field)}: ${text(created)}})
table.update(record["id"], {${text(field)}: ${text(updated)}})

# The next SELECT shows it
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    print(connection.execute(${text(`${sql.replaceAll("%", "%%")}%s`)}, [record["id"]]).fetchall())`;
}
