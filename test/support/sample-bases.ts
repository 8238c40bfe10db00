/**
 * Sample bases as a replica has them, for what is generated from tables and for programs that read them: bases whose names
 * and texts are hostile, and the real ones.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { sqlDefinitions, type TypesLanguage, typesIn } from "../../core/exports";
import { compileMapper, mapRecords, planSchema, type TableSpec } from "../../core/replica";
import { comments } from "../../core/replica/ddl";
import type { SourceRecord, SourceSchema } from "../../core/source";
import { FIELD_TYPES, readSchema } from "../../core/source/airtable/schema";
import { ownDatabase } from "./control-support";
import { dataFolder } from "./data";
import { attachmentViewsOf, createViews, linkViewsOf } from "./link-views";

/** Rows of each table: enough to meet every kind of value. */
const MOST_ROWS = 40;
const HOSTILE = ["hostile", "single links", "names alike"];
export const REAL = ["cmip7-data-request", "unlocking-the-airwaves"];

export interface Sample {
  name: string;
  url: string;
  tables: TableSpec[];
  sql: Awaited<ReturnType<typeof ownDatabase>>["inside"];
}

/** All of them, the real ones if they are there; or those with these names. */
export async function createSamples(
  releases: AsyncDisposableStack,
  names: readonly string[] = [...HOSTILE, ...REAL],
  serverUrl?: string,
): Promise<Sample[]> {
  const create: Record<string, (name: string) => Promise<Sample>> = {
    hostile: (name) => createSample(releases, name, hostileSchema(), hostileRecords, { serverUrl }),
    "names alike": (name) => createSample(releases, name, alikeSchema(), hostileRecords, { serverUrl }),
    // Without link views.
    "single links": (name) =>
      createSample(releases, name, hostileSchema(), hostileRecords, { serverUrl, linkedRecordsAsText: true }),
  };
  const real = (name: string) => {
    const path = join(dataFolder!, name);
    const schema = readSchema(readJson(path, "schema.json"));
    return createSample(releases, name, schema, (table) => realRecords(path, table), { serverUrl });
  };
  const samples: Sample[] = [];
  for (const name of names) {
    if (create[name]) samples.push(await create[name](name));
    else if (dataFolder) samples.push(await real(name));
  }
  return samples;
}

export async function createSample(
  releases: AsyncDisposableStack,
  name: string,
  schema: SourceSchema,
  recordsOf: (table: SourceSchema["tables"][number]) => SourceRecord[],
  {
    linkedRecordsAsText = false,
    serverUrl,
  }: { linkedRecordsAsText?: boolean; serverUrl?: string | undefined } = {},
): Promise<Sample> {
  const own = releases.use(await ownDatabase(serverUrl ?? inject("postgresUrl")));
  const { inside } = own;
  // The sample with single links has no views.
  const settings = { linkedRecordsAsText, lookupsAsText: false, attachmentViews: !linkedRecordsAsText };
  const tables = planSchema(new Map(), schema, settings).rebuild;
  await inside.unsafe(sqlDefinitions("public", tables));
  await inside.unsafe(tables.flatMap((spec) => comments("public", spec.name, spec)).join(";\n"));
  for (const spec of tables) {
    const records = recordsOf(schema.tables.find(({ id }) => id === spec.tableId)!).slice(0, MOST_ROWS);
    const rows = mapRecords(compileMapper(spec), records, []);
    // A table may have the name of a type, such as `json`.
    const table = inside(`public.${spec.name}`);
    await inside`insert into ${table} select * from json_populate_recordset(null::${table}, ${JSON.stringify(rows)}::text::json)`;
  }
  await inside.unsafe(createViews(tables));
  await inside.unsafe(`grant select on all tables in schema public to ${own.name}`);
  return { name, url: own.url, tables, sql: inside };
}

/** The names of all tables and views. */
export const relationsOf = (tables: TableSpec[]) =>
  [...tables, ...linkViewsOf(tables), ...attachmentViewsOf(tables)].map(({ name }) => name);

export const filesOf = (lang: TypesLanguage, { name, tables }: Sample) =>
  typesIn(lang, {
    base: {
      name: `${name} */ """`,
      sourceBaseId: "app1",
      database: { name, schema: "public" },
      settings: { sqlWrites: true },
    },
    tables,
    linkViews: linkViewsOf(tables),
    attachmentViews: attachmentViewsOf(tables),
    choicesOf: () => ["plain", `a "choice" */ \`\${1}\` \\`],
  });

/** Names that tools fold into one, or have themselves, and names that Postgres cuts at 63 bytes. */
function alikeSchema(): SourceSchema {
  const words =
    "Task,Tasks,Rôles,Roles,People,Person,Node,Nodes,Query,Dates,Interval,JSON,Task Connections,Task Edge,All Tasks,Task Order By,Sync Meta,Sync Issues,Task 2,Task2,Taskx2,Page Info,Mutation,User,Order,2024 Budget";
  const long = "A name of a table or a field that has more letters than a name in Postgres can have";
  const names = [...words.split(","), `${long}: one`, `${long}: two`, "Größe ☃ Maße"];
  const id = (kind: string, at: number, nth = 0) =>
    `${kind}${String(at).padStart(7, "0")}${String(nth).padStart(7, "0")}`;
  const fields = (at: number) =>
    [
      ...[
        "Row ID",
        "ID",
        "Node ID",
        "Primary Key",
        "naïve",
        "naive",
        "Natural",
        "Total 1",
        "Total1",
        "Type name",
      ],
      ...[`${long}: one`, `${long}: two`, "1st", "Query", "Nodes", "Created Time", "@omit", "Order"],
    ].map((name, nth) => ({ id: id("fld", at, nth), name, type: "singleLineText" }));
  const link = (linkId: string, linkedTableId: string) => ({
    ...{ id: linkId, name: "Tasks", type: "multipleRecordLinks", options: { linkedTableId } },
  });
  const tables = names.map((name, at) => ({
    ...{ id: id("tbl", at), name, description: "@deprecated a text", primaryFieldId: fields(at)[0]!.id },
    // The views of these samples have no names for links of tables with long names.
    fields: [...fields(at), ...(name.startsWith(long) ? [] : [link(id("fld", at, 99), id("tbl", at % 2))])],
  }));
  return readSchema({ tables });
}

/** A table with a field of every type, and one whose names are words and signs of some language. */
function hostileSchema(): SourceSchema {
  const text = `*/ """ ' \` \${x} {{ x }} \\\n@deprecated @ts-expect-error\r\u2028\u2029\u0085\v\f\ufeff# 😀 \u202e end */`;
  const field = (id: string, name: string, type: string, options?: object) => ({
    ...{ id: `fld${id.padEnd(14, "x")}`, name, type, description: text, options },
  });
  const link = { linkedTableId: "tblWords000000000" };
  const choices = { choices: [{ name: 'a "quoted" one' }, { name: "back\\slash */" }, { name: "😀" }] };
  const types = [...FIELD_TYPES.keys(), "manualSort"].map((type, index) =>
    field(`T${index}`, `${type} '" \\ */`, type, type === "multipleRecordLinks" ? link : choices),
  );
  const words =
    "class def None type constructor __proto__ metadata registry datetime model_config json schema str async 2024 select copy fields position Date Record 名前 größe évil sa orm mapped_column typing match";
  const named = words.split(" ").map((word, index) => field(`W${index}`, word, "singleLineText"));
  const wordTable = {
    ...{ id: "tblWords000000000", name: "class", description: text, primaryFieldId: named[0]!.id },
    fields: [...named, field("Self", "self", "multipleRecordLinks", link)],
  };
  const typeTable = {
    id: "tblTypes000000000",
    name: "2024 */ types",
    primaryFieldId: types[0]!.id,
    fields: types,
  };
  const empty = (id: string, name: string) => ({
    ...{ id: `tbl${id.padEnd(14, "0")}`, name, primaryFieldId: "", fields: [] },
  });
  // "class id" has the name that the ids of "class" could have.
  const others = [empty("Empty", "名前"), empty("Id", "class id"), empty("Name", "Airtable")];
  return readSchema({ tables: [wordTable, typeTable, ...others] });
}

function hostileRecords({ id, fields }: SourceSchema["tables"][number]): SourceRecord[] {
  const createdTime = "2024-05-01T12:34:56.789Z";
  const linked = fields.find(({ linkedTableId }) => linkedTableId);
  // Not in the order of the ids.
  const cell = linked ? { [linked.id]: ["recFull0000000000", emptyRecordOf(linked.linkedTableId!)] } : {};
  const full = Object.fromEntries(
    fields.flatMap((field) => cellOf(field.sourceType).map((value) => [field.id, value])),
  );
  return [
    { id: emptyRecordOf(id), createdTime, fields: {} },
    { id: "recFull0000000000", createdTime, fields: { ...full, ...cell } },
  ];
}

const emptyRecordOf = (tableId: string) => `recEmpty${tableId.slice(3, 12)}`;

/** One value of the type, or none. */
function cellOf(type: string): unknown[] {
  const person = { id: "usr1", email: "a@example.org" };
  const values: Record<string, unknown> = {
    ...{
      singleLineText: "x",
      multilineText: "x\ny",
      checkbox: true,
      number: 1.5,
      currency: 2,
      percent: 0.5,
      rating: 3,
    },
    ...{
      date: "2024-02-29",
      dateTime: createdAt,
      createdTime: createdAt,
      autoNumber: 7,
      count: 1,
      duration: 61,
    },
    ...{
      singleSelect: "😀",
      multipleSelects: ["new", "😀"],
      multipleLookupValues: ["a", null],
      lookup: [1],
      rollup: 4,
    },
    ...{
      barcode: { text: "12345678901234567890" },
      multipleAttachments: [
        {
          id: "att1",
          url: "https://files.example/a.png",
          filename: "a.png",
          type: "image/png",
          size: 12,
          width: 1,
          height: 2,
        },
        { id: "att2", url: "https://files.example/b", filename: "b" },
      ],
      createdBy: person,
      multipleCollaborators: [person],
      formula: "x",
    },
  };
  return type in values ? [values[type]] : [];
}

const createdAt = "2024-05-01T00:00:00.000Z";

/** A table's records keyed by field id; the files are keyed by name. */
function realRecords(path: string, { id, fields }: SourceSchema["tables"][number]): SourceRecord[] {
  if (!readdirSync(path).includes(`${id}.json`)) return [];
  const ids = new Map(fields.map((field) => [field.name, field.id]));
  return readJson<SourceRecord[]>(path, `${id}.json`).map((record) => ({
    ...record,
    fields: Object.fromEntries(Object.entries(record.fields).map(([name, cell]) => [ids.get(name)!, cell])),
  }));
}

function readJson<T>(...path: string[]): T {
  return JSON.parse(readFileSync(join(...path), "utf8")) as T;
}
