/**
 * Copies the table of `first-sync` with COPY into typed columns, page by page and without any check, in a process of its
 * own: what a first sync costs at least.
 *
 * Environment: REPLICA (the owner's URL), SOURCE (URL of the pages), FIELDS, TABLES. Prints the number of records as JSON in its last line.
 */
import { once } from "node:events";
import postgres from "postgres";
import { planSchema } from "../../core/replica";
import { largeTables } from "./large-table";

const { REPLICA, SOURCE, FIELDS, TABLES } = process.env;
const settings = { linkedRecordsAsText: false, lookupsAsText: false };
const tables = largeTables(Number(TABLES ?? 1), Number(FIELDS));
const { rebuild } = planSchema(new Map(), { tables }, settings);
const [{ columns } = { columns: [] }] = rebuild;

interface Page {
  records: { id: string; createdTime: string; fields: Record<string, unknown> }[];
  offset?: string;
}

/** JSON is CSV but for its line breaks and lists. */
function lineOf({ id, createdTime, fields }: Page["records"][number]): string {
  const cells = columns.map(({ fieldId }) => {
    const cell = fields[fieldId] ?? null;
    return Array.isArray(cell) ? `{${JSON.stringify(cell).slice(1, -1)}}` : cell;
  });
  return `${JSON.stringify([id, createdTime, ...cells])
    .slice(1, -1)
    .replaceAll("\\n", "\n")}\n`;
}

const sql = postgres(REPLICA!, { max: 1, onnotice: () => {} });
await sql`create schema floor`;
let seen = 0;
for (const { tableId } of rebuild) {
  const table = `floor."${tableId}"`;
  await sql.unsafe(`create table ${table} (id text primary key, created_time timestamp not null,
    ${columns.map(({ name, columnType }) => `${name} ${columnType}`).join(", ")})`);
  const into = await sql.unsafe(`copy ${table} from stdin (format csv, escape '\\', null 'null')`).writable();
  for (let at: string | undefined = "0"; at !== undefined; ) {
    const answer = await fetch(`${SOURCE}/${at}`);
    const { records, offset } = (await answer.json()) as Page;
    if (!into.write(records.map(lineOf).join(""))) await once(into, "drain");
    seen += records.length;
    at = offset?.split("/")[1];
  }
  into.end();
  await once(into, "finish");
}
await sql.end();
console.log(JSON.stringify({ kind: "COPY", seen, inserted: seen }));
process.exit(0);
