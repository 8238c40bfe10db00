/** What the SQL editor offers at the cursor, which `|` marks. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { completeSql, type Names } from "../../apps/console/assets/sql-completion";

const names: Names = {
  schema: "public",
  relations: [
    table("volunteers", ["name", "status", "started", "team", "last_seen"]),
    table("events", ["name", "starts_at", "stage"]),
    table("sites", ["street", "city"]),
    table("größen", ["straße", "order"]),
  ],
};

function table(name: string, columns: string[]) {
  return { ...named(name), columns: [...columns, "id", "created_time"].map(named) };
}

function named(name: string) {
  return /^[a-z_]+$/.test(name) && name !== "order" ? { name } : { name, written: `"${name}"` };
}

function at(marked: string, isAsked = false) {
  const cursor = marked.indexOf("|");
  return completeSql(marked.replace("|", ""), cursor, names, isAsked);
}

/** The labels of what is offered. */
const labels = (marked: string, isAsked = false) =>
  at(marked, isAsked)?.options.map(({ label }) => label) ?? [];

/** The text after choosing the first option. */
function chosen(marked: string): string {
  const { from, to, options } = at(marked)!;
  const sql = marked.replace("|", "");
  return sql.slice(0, from) + options[0]!.apply + sql.slice(to);
}

test.for([
  "select st| from volunteers",
  "select st|\nfrom public.volunteers",
  "SELECT st| FROM Volunteers",
  'select st| from "volunteers"',
  "select name from volunteers where st|",
  "select v.name from volunteers as v order by st|",
  "update volunteers set st|",
  "insert into volunteers (st|",
  "delete from volunteers where st|",
  "select count(*) filter (where st|) from volunteers",
  "select 1 from events; select st| from volunteers; select 1 from sites",
  "select 'from events', st| /* from events */ from volunteers -- , sites",
  "select extract(year from created_time), st| from volunteers",
  "select st| from (select * from volunteers where team is not null) as v",
  "with v as materialized (select * from volunteers) select st| from v",
  "select st| from volunteers where id in (select id from events)",
])("columns of the query's table come first: %s", (marked) => {
  expect(labels(marked).slice(0, 4)).toEqual(["status", "started", "starts_at", "stage"]);
  // Keywords come after the columns, and what only contains the word after that.
  expect(labels(marked)).toContain("street");
});

test("columns of two tables come first, and those of the same name are qualified", () => {
  const query = "from volunteers v join events e on v.id = any (e.name)";
  expect(labels(`select st| ${query}`).slice(0, 5)).toEqual([
    ...["status", "started", "starts_at", "stage", "street"],
  ]);
  const offered = at(`select na| ${query}`)!.options.slice(0, 2);
  expect(offered.map(({ apply, detail }) => [apply, detail])).toEqual([
    ["v.name", "v"],
    ["e.name", "e"],
  ]);
  expect(labels("select st| from volunteers, sites").slice(0, 3)).toEqual(["status", "started", "street"]);
  expect(chosen("select 1 from volunteers join events using (na|)")).toContain("using (name)");
  expect(chosen("select na| from volunteers join sites on true")).toContain("select name from");
});

test("only the columns of the alias or table before the point are offered", () => {
  expect(labels("select v.st| from volunteers v")).toEqual(["status", "started"]);
  expect(labels("select v.st| from volunteers as v, events e")).toEqual(["status", "started"]);
  expect(labels('select "V".| from volunteers as "V"')).toEqual([
    ...["name", "status", "started", "team", "last_seen", "id", "created_time"],
  ]);
  expect(labels("select events.st| from volunteers v join events on true")).toEqual(["starts_at", "stage"]);
  expect(labels("select public.events.st| from volunteers")).toEqual(["starts_at", "stage"]);
  expect(labels("select w.x from (select name as titled, status from volunteers) w where w.tit|")).toEqual([
    "titled",
  ]);
  expect(labels("select 1 from volunteers v, lateral (select v.st|")).toEqual(["status", "started"]);
  // A table that comes later in the text is not known yet.
  expect(labels("select z.st|")).toEqual(["status", "started", "starts_at", "stage", "street", "straße"]);
});

test("an inner query sees its own tables before those around it", () => {
  expect(
    labels("select * from volunteers where exists (select 1 from events where st|)").slice(0, 4),
  ).toEqual(["starts_at", "stage", "status", "started"]);
  expect(labels("with x as (select st| from sites) select * from volunteers")[0]).toBe("street");
  expect(labels("select 1 from volunteers where status is distinct from st|").slice(0, 2)).toEqual([
    "status",
    "started",
  ]);
});

test("tables are offered where a table is named, and keywords after it", () => {
  expect(labels("select * from v|")[0]).toBe("volunteers");
  expect(labels("select * from volunteers v join ev|")[0]).toBe("events");
  expect(labels("select * from volunteers, s|")[0]).toBe("sites");
  expect(labels("select * from public.|")).toEqual(["volunteers", "events", "sites", "größen"]);
  expect(labels("with busy as (select 1) select * from bu|")).toEqual(["busy"]);
  expect(labels("select * from volunteers whe|")).toEqual(["where", "when"]);
  expect(labels("select name as st|")).toEqual([]);
  expect(labels("se|")[0]).toBe("select");
  expect(labels("select created_time::te|")).toEqual(["text"]);
});

test("names that need quotes get them, and quotes that are typed are kept", () => {
  expect(chosen("select str| from größen")).toBe('select "straße" from größen');
  expect(chosen('select str| from "größen" g')).toBe('select "straße" from "größen" g');
  expect(chosen("select 1 from GRO|")).toBe('select 1 from "größen"');
  expect(chosen('select "str|" from "größen"')).toBe('select "straße" from "größen"');
  expect(chosen('select "str| from größen')).toBe('select "straße" from größen');
  expect(chosen('select g."ord|" from größen as g')).toBe('select g."order" from größen as g');
  expect(chosen("select ord| from größen")).toBe('select "order" from größen');
  expect(chosen('select "stat|" from volunteers')).toBe('select "status" from volunteers');
});

test("all columns and then keywords are offered without a table, keywords in the case that is typed", () => {
  const offered = labels("select s|");
  expect(offered.indexOf("street")).toBeLessThan(offered.indexOf("sum"));
  expect(labels("select name FR|")).toEqual(["FROM"]);
  expect(labels("select na|").filter((label) => label === "name")).toHaveLength(1);
  expect(at("select na|")!.options[0]!.detail).toBe("volunteers, events");
  expect(at("select cre|")!.options[0]!.detail).toBe("volunteers and 3 more");
});

test("nothing opens in texts, comments and numbers, or where nothing is typed", () => {
  for (const marked of [
    "select 'st|' from volunteers",
    "select 'st|",
    "-- st|",
    "/* st| */ select 1",
    "select 1|",
  ]) {
    expect(labels(marked, true)).toEqual([]);
  }
  expect(labels("select $$st|$$ from volunteers", true)).toEqual([]);
  expect(labels("select | from volunteers")).toEqual([]);
  expect(labels("select name from|")).toEqual([]);
  expect(labels("select | from volunteers", true).slice(0, 2)).toEqual(["name", "status"]);
  expect(labels("select * from |", true)[0]).toBe("volunteers");
});

test("any text at all is completed without an error, and within it", () => {
  const part = fc.constantFrom(
    ...[
      "select",
      "from",
      "as",
      "(",
      ")",
      ",",
      ".",
      '"',
      "'",
      "volunteers",
      "v",
      "größen",
      " ",
      "\n",
      "with",
      ";",
    ],
    ...["join", "lateral", "--", "/*", "*/", "$$", "st", "::", "is distinct", "extract", "insert into", "1"],
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(part, fc.string())), fc.nat(), fc.boolean(), (parts, seed, isAsked) => {
      const sql = parts.join("");
      const cursor = seed % (sql.length + 1);
      const found = completeSql(sql, cursor, names, isAsked);
      if (!found) return;
      expect([
        0 <= found.from,
        found.from <= cursor,
        cursor <= found.to,
        found.to <= sql.length,
      ]).not.toContain(false);
      expect(found.options.length).toBeGreaterThan(0);
    }),
    { numRuns: 2000 },
  );
});
