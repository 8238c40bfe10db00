/** What analytics programs are given about a replica. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { dbtSources, erDiagram } from "../../core/exports";
import { planSchema, type TableSpec } from "../../core/replica";
import type { SourceTable } from "../../core/source";
import { visibleText } from "../../core/visible-text";
import { fuzz } from "../support/fuzz";
import { sourceTable } from "../support/source-records";

const base = {
  id: "bas_1",
  name: "Project Tracker",
  sourceBaseId: "app1",
  database: { id: "dat_1", name: "bt_1", schema: "public", host: "db.example", port: 5432 },
};

function specsOf(tables: SourceTable[]): TableSpec[] {
  return planSchema(new Map(), { tables }, { linkedRecordsAsText: false, lookupsAsText: false }).rebuild;
}

const projects = sourceTable("tblP", "Projects", { Name: "text", Tasks: "links", "2024 budget": "currency" });
projects.description = "All that we do";
projects.fields[1]!.linkedTableId = "tblT";
const tasks = sourceTable("tblT", "Tasks", { Title: "text" });
const specs = specsOf([projects, tasks]);

test("dbt gets every table and column: its type, its name at the source, and the references of its ids", () => {
  const linkViews = [
    {
      name: "projects__tasks",
      tableId: "tblP",
      fieldId: "fld1",
      columns: ["projects_id", "tasks_id"] as [string, string],
    },
  ];
  const attachmentViews = [
    {
      name: "tasks__files",
      tableId: "tblT",
      fieldId: "fld9",
      columns: ["tasks_id", "attachment_id"] as [string, string],
    },
  ];
  const { version, sources } = parse(dbtSources(base, { tables: specs, linkViews, attachmentViews }));
  expect(version).toBe(2);
  expect(sources).toMatchObject([{ name: "project_tracker", database: "bt_1", schema: "public" }]);
  expect(sources[0].tables.map(({ name }: { name: string }) => name)).toEqual([
    "projects",
    "tasks",
    "projects__tasks",
    "tasks__files",
  ]);
  const [first, , view, files] = sources[0].tables;
  expect(first.description).toBe("Projects (tblP)\n\nAll that we do");
  expect(first.columns).toEqual([
    { name: "id", description: expect.any(String), data_type: "text", tests: ["unique", "not_null"] },
    { name: "created_time", description: expect.any(String), data_type: "timestamp", tests: ["not_null"] },
    { name: "name", quote: true, description: "Name (fld0, text)", data_type: "text" },
    { name: "tasks", quote: true, description: "Tasks (fld1, links)", data_type: "text[]" },
    { name: "2024_budget", quote: true, description: "2024 budget (fld2, currency)", data_type: "numeric" },
  ]);
  expect(view.columns.map(({ name }: { name: string }) => name)).toEqual([
    "projects_id",
    "position",
    "tasks_id",
  ]);
  expect(
    files.columns.map(({ name, data_type }: Record<string, string>) => `${name} ${data_type}`).join(),
  ).toBe(
    "tasks_id text,position integer,attachment_id text,filename text,type text,size bigint,width integer,height integer,url text",
  );
});

/** How Jinja renders a text whose only expression is a quoted text. */
function rendered(text: string): string {
  return text.replace(/\{\{ '([^']*)' \}\}|\{[{%#]/g, (found, quoted: string | undefined) => {
    if (quoted === undefined) throw new Error(`Jinja would read ${found}`);
    return quoted;
  });
}

fuzz(
  "dbt renders a name or a description as it is at the source, and executes nothing in it",
  200,
  fc.property(
    fc.array(fc.constantFrom("{", "{{", "{%", "{#", "}}", "%}", "#}", "env_var('X')", "'", " ", "a", "\n")),
    (parts) => {
      const text = `x${parts.join("")}x`;
      const [spec] = specsOf([{ ...tasks, name: text, description: text }]);
      const { sources } = parse(
        dbtSources({ ...base, name: text }, { tables: [spec!], linkViews: [], attachmentViews: [] }),
      );
      expect(rendered(sources[0].tables[0].description)).toBe(`${text} (tblT)\n\n${text}`);
      expect(rendered(sources[0].description)).toBe(`${text} (app1), kept up to date by Basetide`);
    },
  ),
);

test("the diagram has a box per table and a line per column of links", () => {
  expect(erDiagram(specs)).toBe(`erDiagram
  "projects" {
    text id PK
    timestamp created_time
    text name "Name"
    text[] tasks FK "Tasks"
    numeric column_3 "2024_budget: 2024 budget"
  }
  "tasks" {
    text id PK
    timestamp created_time
    text title "Title"
  }
  "projects" }o--o{ "tasks" : "tasks"
`);
});

const odd = fc.string({ unit: "binary", maxLength: 40 });
const source = fc.record({ base: odd, table: odd, field: odd, description: odd });

test("with any names at the source, the YAML has them and the diagram stays valid", () => {
  fc.assert(
    fc.property(source, ({ base: baseName, table, field, description }) => {
      const named = sourceTable("tblP", table, { [field]: "links" });
      named.description = description;
      named.fields[0]!.linkedTableId = "tblP";
      const [spec] = specsOf([named]);
      const { sources } = parse(
        dbtSources({ ...base, name: baseName }, { tables: [spec!], linkViews: [], attachmentViews: [] }),
      );
      const [told] = sources[0].tables;
      expect(told.name).toBe(spec!.name);
      expect(told.description.startsWith(visibleText(spec!.sourceName))).toBe(true);
      expect(told.columns[2].name).toBe(spec!.columns[0]!.name);

      const lines = erDiagram([spec!]).trimEnd().split("\n");
      expect(lines).toHaveLength(7);
      expect(lines[4]).toMatch(/^ {4}text\[\] [A-Za-z_][A-Za-z0-9_]* FK( "[^"]*")?$/);
      expect(lines[6]).toMatch(/^ {2}"[^"]+" }o--o{ "[^"]+" : "[^"]+"$/);
    }),
  );
});
