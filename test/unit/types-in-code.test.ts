/** The types of a base in each language, whatever its names and texts are. */
import { existsSync } from "node:fs";
import { get_dmmf } from "@prisma/prisma-schema-wasm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type TypesLanguage, typesIn, typesLanguages } from "../../core/exports";
import { planSchema, type TableSpec } from "../../core/replica";
import type { FieldType, SourceTable } from "../../core/source";
import { anyText, fuzz } from "../support/fuzz";
import { attachmentViewsOf, linkViewsOf } from "../support/link-views";
import { sourceTable } from "../support/source-records";

const PYTHON = "/usr/bin/python3";
const base = { name: "Project Tracker", sourceBaseId: "app1", database: { name: "bt_1", schema: "public" } };

function specsOf(tables: SourceTable[], linkedRecordsAsText = false): TableSpec[] {
  const settings = { linkedRecordsAsText, lookupsAsText: false, attachmentViews: true };
  return planSchema(new Map(), { tables }, settings).rebuild;
}

function textOf(lang: TypesLanguage, tables: TableSpec[], title = base.name): string {
  const views = { linkViews: linkViewsOf(tables), attachmentViews: attachmentViewsOf(tables) };
  const input = { base: { ...base, name: title }, tables, ...views };
  return typesIn(lang, input)
    .map(({ text }) => text)
    .join("\n");
}

const projects = sourceTable("tblP", "Projects", {
  Name: "text",
  Tasks: "links",
  "2024 budget": "currency",
  Done: "checkbox",
  Stage: "single_select",
  Tags: "multiple_select",
  Due: "date",
  Sum: "lookup",
});
projects.description = "All that we do";
projects.fields[1]!.linkedTableId = "tblT";
projects.fields[4]!.choices = ["To do", 'Say "no"'];
const tasks = sourceTable("tblT", "Tasks", { Title: "text" });
const specs = specsOf([projects, tasks]);

test("with SQL writes: what can be inserted and updated, without what Airtable computes", () => {
  const views = { linkViews: [], attachmentViews: [] };
  const log = specsOf([sourceTable("tblL", "Log", { Name: "text" })]);
  const left = specs.map((spec) => (spec.name === "tasks" ? { ...spec, partial: "records" as const } : spec));
  const writing = { base: { ...base, settings: { sqlWrites: true } }, tables: [...left, ...log], ...views };
  const [ts, kysely, drizzle] = (["ts", "kysely", "drizzle"] as const).map(
    (lang) => typesIn(lang, writing)[0].text,
  );
  const insert = ts!.slice(ts!.indexOf("export interface ProjectsInsert"));
  expect(insert.slice(0, insert.indexOf("}"))).toContain("stage?: ");
  expect(insert.slice(0, insert.indexOf("}"))).toContain('"2024_budget"?: number | Numeric | null;');
  expect(insert.slice(0, insert.indexOf("}"))).not.toContain("sum");
  expect(ts).toContain("log_: LogInsert;");
  expect(ts).not.toContain("TasksInsert");
  expect(kysely).toContain("due: Written<Day | null>;");
  expect(kysely).toContain("id: Copied<ProjectsId>;");
  expect(kysely).toContain("projects: ProjectsWrites;");
  expect(drizzle).toContain('export const writeProjects = writes.table("projects", {');
  expect(drizzle).toMatch(/sum: pg\.text\("sum"\).*\.generatedAlwaysAs/);
  expect(drizzle).toContain('export const writeLog = writes.table("log_", {');
  for (const lang of ["ts", "kysely", "drizzle"] as const)
    expect(textOf(lang, specs)).not.toMatch(/Insert|WriteDatabase|writes/);
});

test("in TypeScript: ids of their own, choices, what may be empty, names and descriptions", () => {
  const input = { base, tables: specs, linkViews: [], attachmentViews: [], choicesOf: () => ["red", "blue"] };
  const [{ text }] = typesIn("ts", input);
  expect(text).toContain('export type ProjectsId = string & { readonly __table: "tblP" };');
  const row = text.slice(text.indexOf("export interface ProjectsRow"));
  expect(text.slice(0, text.indexOf("export interface ProjectsRow"))).toMatch(
    /\/\*\*\n \* Projects \(tblP\)\n \*\n \* All that we do\n \*\/\n$/,
  );
  const lines = row
    .slice(0, row.indexOf("}"))
    .split("\n")
    .filter((line) => line.endsWith(";"))
    .map((line) => line.trim());
  expect(lines).toEqual(
    [
      "id: ProjectsId;",
      "created_time: Date;",
      '"2024_budget": Numeric | null;',
      "done: boolean;",
      "due: Day | null;",
      'stage: "To do" | "Say \\"no\\"" | UnknownChoice | null;',
      "sum: (string | null)[] | null;",
      'tags: ("red" | "blue" | UnknownChoice)[] | null;',
      "tasks: TasksId[] | null;",
      "name: string | null;",
    ].sort((a, b) => sqlName(a).localeCompare(sqlName(b), "en")),
  );
  expect(text).toContain('"2024 budget"?: number;');
});

function sqlName(line: string): string {
  const name = line.replaceAll('"', "").split(":")[0]!;
  return name === "id" ? " " : name === "created_time" ? " 1" : name;
}

test("the order of tables and columns at the source changes no byte", () => {
  const turned = specs.toReversed().map((spec) => ({ ...spec, columns: spec.columns.toReversed() }));
  for (const { lang } of typesLanguages.filter((one) => one.lang !== "dbt")) {
    expect(textOf(lang, turned)).toBe(textOf(lang, specs));
  }
});

/** What breaks out of comments and texts in some language, and words that one of them reserves. */
const hostile = fc.oneof(
  anyText,
  fc
    .array(
      fc.constantFrom(
        ...'*/ /* // \' " """ \'\'\' ` $ { \\ \\" \n \r \u2028 \0 # @deprecated @ts-ignore {{ %} evil() 😀 é 名 / *'.split(
          / (?=.)/,
        ),
        " ",
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join("")),
  fc.constantFrom(
    ..."class def None True type constructor __proto__ metadata registry datetime model_config json schema str async 2024 id select public pg relations await match Date Record position 名前 größe x·y ª Ⅷ ﬁ 𝒳 airtable p pId p_id".split(
      " ",
    ),
  ),
);

const typescript = new Bun.Transpiler({ loader: "ts" });
const codeLanguages = ["ts", "zod", "kysely", "drizzle"] as const;

const fieldTypes: FieldType[] = [
  "text",
  "links",
  "single_select",
  "checkbox",
  "lookup",
  "barcode",
  "formula",
  "attachment",
];
const anyTable = (id: string) =>
  fc
    .record({
      name: hostile,
      description: hostile,
      fields: fc.array(fc.tuple(hostile, fc.constantFrom(...fieldTypes), hostile), { maxLength: 6 }),
    })
    .map(
      ({ name, description, fields }): SourceTable => ({
        ...sourceTable(id, name, {}),
        description,
        fields: fields.map(([fieldName, type, text], index) => ({
          id: `fld${id}${index}`,
          name: fieldName,
          type,
          sourceType: type,
          description: text,
          linkedTableId: index % 2 ? "tblA" : "tblB",
          choices: [text, fieldName, "plain"],
        })),
      }),
    );
const anyBase = fc.record({
  title: hostile,
  tables: fc.tuple(anyTable("tblA"), anyTable("tblB")),
  asText: fc.boolean(),
});

/** The same tables without any text of the source, except what is part of the code. */
function bare(tables: TableSpec[]): TableSpec[] {
  return tables.map(({ description: _, ...table }) => ({
    ...table,
    sourceName: "x",
    columns: table.columns.map(({ description: _description, ...column }) => ({
      ...column,
      sourceName: "x",
    })),
  }));
}

fuzz(
  "TypeScript, JSON and Prisma read any names and texts, and none of them becomes code",
  60,
  fc.property(anyBase, ({ title, tables, asText }) => {
    const all = specsOf(tables, asText);
    for (const lang of codeLanguages) {
      const code = typescript.transformSync(textOf(lang, all, title));
      expect(code).toBe(typescript.transformSync(textOf(lang, bare(all), "x")));
      // A name is declared once as a type, and once as a value.
      const declared = [
        ...textOf(lang, all, title).matchAll(/^export (?:(const)|type|interface) ([^\s=<]+)/gm),
      ];
      const names = declared.map(([, kind = "type", name]) => `${kind} ${name}`);
      expect(names.length).toBe(new Set(names).size);
    }
    const { $defs } = JSON.parse(textOf("jsonschema", all, title));
    expect(Object.keys($defs).length).toBeGreaterThanOrEqual(4);
    const sql = textOf("postgrest", all, title);
    expect(withoutComments("--", sql)).toBe(withoutComments("--", textOf("postgrest", bare(all), "x")));
    JSON.parse(withoutComments("//", textOf("postgraphile", all, title)));
    for (const { args } of JSON.parse(textOf("hasura", all, title)).args) {
      const { custom_name: table = args.table.name, column_config: columns = {} } = args.configuration ?? {};
      const names = [
        args.name ?? table,
        ...Object.values<{ custom_name: string }>(columns).map((one) => one.custom_name),
      ];
      for (const name of names) expect(name).toMatch(/^[A-Za-z_][\w]*$/);
    }
    const models = prismaModels(textOf("prisma", all, title));
    expect(models.map(({ dbName }) => dbName)).toEqual(expect.arrayContaining(all.map(({ name }) => name)));
    for (const spec of all) {
      const { fields } = models.find(({ dbName }) => dbName === spec.name)!;
      const columns = fields
        .filter(({ kind }) => kind === "scalar")
        .map(({ dbName, name }) => dbName ?? name);
      expect(columns.sort()).toEqual(["id", "created_time", ...readByPrisma(spec)].sort());
    }
  }),
);

/** The columns without details of attachments, and without lists of lookups, which Prisma does not support. */
function readByPrisma({ columns }: TableSpec): string[] {
  const isUnread = ({ filesOf, type, columnType }: TableSpec["columns"][number]) =>
    filesOf !== undefined || (type === "lookup" && columnType === "text[]");
  return columns.filter((column) => !isUnread(column)).map(({ name }) => name);
}

/** The text without the lines that are comments. */
function withoutComments(mark: string, text: string): string {
  return text
    .split("\n")
    .filter((line) => !line.startsWith(mark))
    .join("\n");
}

test("a view over attachments is a type of its own, with what may be empty, in every language", () => {
  const documents = sourceTable("tblD", "Documents", { Name: "text", Files: "attachment" });
  const tables = specsOf([documents]);
  const view = (lang: TypesLanguage, from: string) => {
    const text = textOf(lang, tables);
    return text.slice(text.indexOf(from)).replace(/^ *(\/\/|\/\*|#:).*\n/gm, "");
  };
  expect(view("ts", "export interface DocumentsFilesRow")).toMatch(
    /^.*\n {2}documents_id: DocumentsId;\n {2}position: number;\n {2}attachment_id: string;\n {2}filename: string \| null;\n {2}type: string \| null;\n {2}size: Numeric \| null;\n {2}width: number \| null;\n {2}height: number \| null;\n {2}url: string;\n\}/,
  );
  expect(textOf("ts", tables)).not.toContain("files__files");
  expect(view("kysely", "export interface DocumentsFilesTable")).toContain("size: Copied<Numeric | null>;");
  expect(view("zod", "export const DocumentsFilesRow")).toContain("size: numeric.nullable(),");
  expect(view("drizzle", "export const documentsFiles ")).toContain(
    'size: pg.bigint("size", { mode: "number" }),',
  );
  expect(view("prisma", "model DocumentsFiles ")).toContain("size BigInt?");
  expect(view("pydantic", "class DocumentsFiles(")).toContain("size: typing.Optional[int]");
  expect(view("sqlalchemy", "DocumentsFiles = sa.Table(")).toContain('sa.Column("size", sa.BigInteger),');
  expect(JSON.parse(textOf("jsonschema", tables)).$defs.DocumentsFiles.properties.size.type).toEqual([
    "integer",
    "null",
  ]);
  expect(textOf("hasura", tables)).toContain('"documents__files"');
  expect(textOf("postgraphile", tables)).toContain("(documents_id) references public.documents (id)");
  expect(textOf("dbt", tables)).toContain("name: documents__files");
});

test("Prisma: the key of a view begins with the record that has the link, also where names have no ASCII letters", () => {
  const pairs = [
    ["Задачи", "Проекты"],
    ["Проекты", "Задачи"],
  ] as const;
  for (const [from, to] of pairs) {
    const table = sourceTable("tblA", from, { Name: "text", Ссылки: "links" });
    table.fields[1]!.linkedTableId = "tblB";
    const models = prismaModels(
      textOf("prisma", specsOf([table, sourceTable("tblB", to, { Name: "text" })])),
    );
    const { primaryKey, fields } = models.find(({ dbName }) => dbName.includes("__"))!;
    const key = primaryKey!.fields.map((name) => fields.find((field) => field.name === name)!);
    expect(key.map(({ dbName, name }) => dbName ?? name)).toEqual([`${from.toLowerCase()}_id`, "position"]);
  }
});

test("PostgREST, PostGraphile and Hasura get the relations of links in their own form", () => {
  expect(textOf("postgrest", specs)).toContain(
    `create function "public"."tasks__records"("public"."projects") returns setof "public"."tasks"`,
  );
  const { config } = JSON.parse(withoutComments("//", textOf("postgraphile", specs)));
  expect(config.class).toEqual({
    // `_sync_meta` and its view would have one name.
    "public.__sync_meta__": { tags: { name: "sync_meta_view" } },
    "public.projects": { attribute: { "2024_budget": { tags: { name: "f_2024_budget" } } } },
    "public.projects__tasks": {
      tags: {
        primaryKey: "projects_id,position",
        foreignKey: [
          "(projects_id) references public.projects (id)",
          "(tasks_id) references public.tasks (id)",
        ],
      },
    },
  });
  const { args } = JSON.parse(textOf("hasura", specs));
  const relations = args.filter(({ type }: { type: string }) => type !== "pg_track_table");
  const shown = relations.map(({ type, args: one }: HasuraRelation) => [
    type.replace("pg_create_", ""),
    `${one.table.name}.${one.name}`,
    one.using.manual_configuration.remote_table.name,
    one.using.manual_configuration.column_mapping,
  ]);
  expect(args).toHaveLength(3 + relations.length);
  expect(shown).toEqual([
    ["array_relationship", "projects.projects__tasks", "projects__tasks", { id: "projects_id" }],
    ["array_relationship", "tasks.projects__tasks__linked", "projects__tasks", { id: "tasks_id" }],
    ["object_relationship", "projects__tasks.projects_id__record", "projects", { projects_id: "id" }],
    ["object_relationship", "projects__tasks.tasks_id__record", "tasks", { tasks_id: "id" }],
  ]);
});

interface HasuraRelation {
  type: string;
  args: {
    table: { name: string };
    name: string;
    using: {
      manual_configuration: { remote_table: { name: string }; column_mapping: Record<string, string> };
    };
  };
}

interface PrismaModel {
  dbName: string;
  primaryKey: { fields: string[] } | null;
  fields: { name: string; dbName?: string; kind: string }[];
}

/** @throws if Prisma does not accept the schema */
function prismaModels(text: string): PrismaModel[] {
  const request = { prismaSchema: [["schema.prisma", text]], noColor: true };
  return JSON.parse(get_dmmf(JSON.stringify(request))).datamodel.models;
}

/** Prints the names that the code of each file uses, and fails on one that Python cannot read. */
const NAMES = `
import ast, json, sys
for text in json.load(sys.stdin):
    tree = ast.parse(text)
    calls = [node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert "evil" not in calls, text
    for one in tree.body:
        if isinstance(one, ast.ClassDef):
            names = [part.target.id for part in one.body if isinstance(part, ast.AnnAssign)]
            assert len(names) == len(set(names)), names
    top = [one.name for one in tree.body if isinstance(one, ast.ClassDef)]
    top += [target.id for one in tree.body if isinstance(one, ast.Assign) for target in one.targets]
    assert len(top) == len(set(top)), top
`;

test("Python reads any names and texts, and none of them becomes code", { timeout: 60_000 }, async ({
  skip,
}) => {
  skip(!existsSync(PYTHON), `there is no ${PYTHON}`);
  const samples = fc.sample(anyBase, { numRuns: 150, seed: 1 }).flatMap(({ title, tables, asText }) => {
    const all = specsOf(tables, asText);
    return (["pydantic", "sqlalchemy"] as const).map((lang) => textOf(lang, all, title));
  });
  const child = Bun.spawn([PYTHON, "-c", NAMES], {
    stdin: new Blob([JSON.stringify(samples)]),
    stdout: "pipe",
    stderr: "pipe",
  });
  expect([await new Response(child.stderr).text(), await child.exited]).toEqual(["", 0]);
});
