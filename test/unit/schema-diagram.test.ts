/** The diagram of a base's tables, and their definitions as SQL. */
import fc from "fast-check";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { type Diagram, diagramOf, sqlDefinitions } from "../../core/exports";
import { layOut } from "../../core/exports/diagram-layout";
import { tableLinks } from "../../core/exports/table-links";
import { planSchema, type TableSpec } from "../../core/replica";
import { fieldTypeName } from "../../views/components/field-type";
import { DiagramSvg } from "../../views/schema/diagram";
import { sourceTable } from "../support/source-records";

/** Tables of these numbers of fields, with links between some of them, each from the first table to the second. */
function tablesOf(sizes: number[], links: [number, number][]): TableSpec[] {
  const tables = sizes.map((size, at) =>
    sourceTable(
      `tbl${at}`,
      `Table ${at}`,
      Object.fromEntries([
        ...Array.from({ length: size }, (_, field) => [`Field ${field}`, "text"]),
        ...links.filter(([from]) => from === at).map((_, link) => [`Link ${link}`, "links"]),
      ]),
    ),
  );
  for (const [at, table] of tables.entries()) {
    const own = links.filter(([from]) => from === at);
    for (const [link, [, to]] of own.entries()) table.fields[sizes[at]! + link]!.linkedTableId = `tbl${to}`;
  }
  return planSchema(new Map(), { tables }, { linkedRecordsAsText: false, lookupsAsText: false }).rebuild;
}

const bases = fc
  .array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 60 })
  .chain((sizes) => {
    const table = fc.nat(sizes.length - 1);
    return fc.record({
      sizes: fc.constant(sizes),
      links: fc.array(fc.tuple(table, table), { maxLength: 90 }),
    });
  })
  .map(({ sizes, links }) => tablesOf(sizes, links));

function overlaps({ boxes }: Diagram): string[] {
  return boxes.flatMap((a, at) =>
    boxes
      .slice(at + 1)
      .filter(
        (b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height,
      )
      .map((b) => `${a.table.name} and ${b.table.name}`),
  );
}

test("every table has its place, every link a line from its row, and no two tables overlap", () => {
  fc.assert(
    fc.property(bases, (tables) => {
      const diagram = layOut(tables);
      expect(diagram.boxes.map(({ table }) => table.name).sort()).toEqual(
        tables.map(({ name }) => name).sort(),
      );
      expect(overlaps(diagram)).toEqual([]);
      const isInside = ({ x, y }: { x: number; y: number }) =>
        x >= 0 && y >= 0 && x <= diagram.width && y <= diagram.height;
      for (const { x, y, width, height } of diagram.boxes) {
        expect([isInside({ x, y }), isInside({ x: x + width, y: y + height })]).toEqual([true, true]);
      }
      expect(diagram.lines).toHaveLength(tableLinks(tables).length);
      for (const { points, link } of diagram.lines) {
        expect(points.every(isInside)).toBe(true);
        const box = diagram.boxes.find(({ table }) => table === link.from)!;
        expect([box.x, box.x + box.width]).toContain(points[0]!.x);
        expect(points[0]!.y).toBeGreaterThan(box.y);
        expect(points[0]!.y).toBeLessThan(box.y + box.height);
      }
    }),
    { numRuns: 40 },
  );
});

test("lines pass between the tables that they cross", () => {
  // Three layers: the line from the first to the last passes the table in the middle.
  const tables = tablesOf(
    [3, 3, 3],
    [
      [0, 1],
      [1, 2],
      [0, 2],
    ],
  );
  const { boxes, lines } = layOut(tables);
  const middle = boxes.find(({ table }) => table.tableId === "tbl1")!;
  const far = lines.find(({ link }) => link.to.tableId === "tbl2" && link.from.tableId === "tbl0")!;
  expect(far.points).toHaveLength(4);
  for (const { y } of far.points.slice(1, 3)) expect(y < middle.y || y > middle.y + middle.height).toBe(true);
});

test("the same shape has the same diagram, which is computed once, and another shape another", () => {
  const links: [number, number][] = [
    [0, 1],
    [1, 2],
    [2, 0],
  ];
  const first = tablesOf([2, 3, 4, 5], links);
  expect(layOut(first)).toEqual(layOut(tablesOf([2, 3, 4, 5], links)));
  expect(diagramOf(first)).toBe(diagramOf(tablesOf([2, 3, 4, 5], links)));
  expect(diagramOf(tablesOf([2, 3, 4, 6], links))).not.toBe(diagramOf(first));
});

test("a diagram of many tables is about as wide as a screen, whatever the layers are", () => {
  // A hub: one layer would have 40 tables.
  const hub = tablesOf(
    Array.from({ length: 41 }, () => 4),
    Array.from({ length: 40 }, (_, at) => [at + 1, 0] as [number, number]),
  );
  const { width, height } = layOut(hub);
  expect(width / height).toBeGreaterThan(0.8);
  expect(width / height).toBeLessThan(4);
});

test("tables with very many links keep no process busy: they are laid out within the time of a test", {
  timeout: 10_000,
}, () => {
  const count = 200;
  const links = [0, 1, 2, 3, 4, 5].flatMap((nth) =>
    Array.from({ length: count }, (_, at) => [at, (at * 7 + nth * 13 + 1) % count] as [number, number]),
  );
  const tables = tablesOf(
    Array.from({ length: count }, () => 8),
    links,
  );
  const { boxes, lines } = layOut(tables);
  expect([boxes.length, lines.length]).toEqual([count, tableLinks(tables).length]);
  expect(lines.length).toBeGreaterThan(5 * count);
});

test("a diagram of 200 tables and as many links is a small part of a page", () => {
  const links = Array.from({ length: 200 }, (_, at) => [at, (at * 7) % 90] as [number, number]);
  const tables = tablesOf(
    Array.from({ length: 200 }, () => 20),
    links,
  );
  const svg = renderToString(h(DiagramSvg, { diagram: layOut(tables), path: "/bases/bas_1/schema" }));
  expect(Bun.gzipSync(svg).length).toBeLessThan(25_000);
});

test("a line that passes up to 200 tables is written in a few hundred characters", () => {
  const chain = Array.from({ length: 199 }, (_, at) => [at, at + 1] as [number, number]);
  const far = [0, 10, 20, 30, 40].map((at) => [at, 199 - at] as [number, number]);
  const tables = tablesOf(
    Array.from({ length: 200 }, () => 5),
    [...chain, ...far],
  );
  const svg = renderToString(h(DiagramSvg, { diagram: layOut(tables), path: "/bases/bas_1/schema" }));
  const lines = [...svg.matchAll(/class="er-line" d="([^"]*)"/g)].map(([, line]) => line!.length);
  expect(lines).toHaveLength(204);
  expect(Math.max(...lines)).toBeLessThan(400);
});

test("the two fields of a link are one line with the cardinality of each", () => {
  const tables = tablesOf(
    [1, 1],
    [
      [0, 1],
      [1, 0],
      [0, 1],
      [0, 0],
    ],
  );
  tables[1]!.columns.at(-1)!.columnType = "text";
  expect(tableLinks(tables).map(({ column, inverse }) => [column.name, inverse?.name])).toEqual([
    ["link_0", "link_0"],
    ["link_1", undefined],
    ["link_2", undefined],
  ]);
  expect(layOut(tables).lines.map(({ ends }) => ends)).toEqual([
    ["one", "many"],
    ["many", "many"],
    ["many", "many"],
  ]);
});

test("definitions quote what people wrote", () => {
  const tables = tablesOf([1], []);
  tables[0]!.name = 'it"s';
  tables[0]!.sourceName = "It's \\ here";
  tables[0]!.description = "two\nlines";
  expect(sqlDefinitions("my schema", tables)).toBe(`create schema if not exists "my schema";

create table "my schema"."it""s" (
  id text primary key,
  created_time timestamp not null,
  "field_0" text
);
comment on table "my schema"."it""s" is E'It''s \\\\ here

two
lines';
comment on column "my schema"."it""s"."field_0" is 'Field 0';
`);
});

test("a field's type is named as in Airtable, with the type of its result", () => {
  const [column] = tablesOf([1], [])[0]!.columns;
  expect(fieldTypeName({ ...column!, type: "rollup", result: "number" })).toBe("Rollup (number)");
  expect(fieldTypeName({ ...column!, type: "links" })).toBe("Link to another record");
});
