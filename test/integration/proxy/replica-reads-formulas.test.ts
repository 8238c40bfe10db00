/**
 * Formulas and sorts that the replica evaluates: the source's own records, in an order that the source could give. What
 * may differ for one row is left to the source.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { translatedFunctions } from "../../../core/proxy/reads/formula-functions";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;
let base: Replicated;
let baseId: string;

const STAGES = ["todo", "doing", "done"];
const FIELDS = [
  { name: "Name", type: "singleLineText" },
  { name: "Nick", type: "multilineText" },
  { name: "Age", type: "number", options: { precision: 2 } },
  { name: "Goal", type: "number", options: { precision: 2 } },
  { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
  { name: "Born", type: "date", options: { dateFormat: { name: "iso" } } },
  {
    name: "Seen",
    type: "dateTime",
    options: { dateFormat: { name: "iso" }, timeFormat: { name: "24hour" }, timeZone: "utc" },
  },
  { name: "Tags", type: "multipleSelects", options: { choices: [{ name: "red" }, { name: "dark blue" }] } },
  { name: "Stage", type: "singleSelect", options: { choices: STAGES.map((name) => ({ name })) } },
  {
    name: "Loud",
    type: "formula",
    options: { formula: "UPPER({Name})", result: { type: "singleLineText" } },
  },
  {
    name: "Twice",
    type: "formula",
    options: { formula: "{Age} * 2", result: { type: "number", options: { precision: 2 } } },
  },
  {
    name: "Next",
    type: "formula",
    options: { formula: "IF({Born}, DATEADD({Born}, 1, 'days'))", result: { type: "date" } },
  },
  { name: "Made", type: "createdTime", options: { result: { type: "dateTime" } } },
  { name: "Changed", type: "lastModifiedTime", options: { result: { type: "date" } } },
  { name: "Edited", type: "lastModifiedTime", options: { result: { type: "dateTime" } } },
];

/** Cells of `index`, none of them blank; `odd`: some blank, or with characters that the languages treat differently. */
function cells(index: number, odd: boolean): Record<string, unknown> {
  const names = ["Ada", "bob", "ADA L", " Eve ", "it's", "a,b"];
  const oddNames = ["Łódź", "\u212aim", "İd", "🙂 Ada", "straße", "\u00a0x\u3000"];
  const of = <T>(all: T[], step = 1) => all[Math.floor(index / step) % all.length]!;
  const all = {
    Name: odd ? of([...names, ...oddNames]) : of(names),
    Nick: of(["Ada", "x", "kim"], 2),
    Age: (index % 9) + 1 + (index % 2) / 4,
    Goal: (index % 5) + 1,
    Done: index % 2 === 0,
    Born: `1990-0${(index % 3) + 1}-0${(index % 9) + 1}`,
    Seen: `2026-01-0${(index % 4) + 1}T0${index % 6}:04:0${index % 10}.${(index % 9) + 1}00Z`,
    Tags: of([["red"], ["dark blue"], ["red", "dark blue"]]),
    Stage: of(STAGES, 3),
  };
  if (!odd) return all;
  const zeros = index % 4 === 0 ? { Age: 0 } : {};
  return Object.fromEntries(Object.entries({ ...all, ...zeros }).filter((_, at) => (index + at * 3) % 5 > 0));
}

beforeAll(async () => {
  stack = await proxyStack({ SCHEMA_POLL_SECONDS: "0.01" });
  const table = (name: string, odd: boolean) => ({
    name,
    fields: FIELDS,
    records: Array.from({ length: 60 }, (_, index) => ({ fields: cells(index, odd) })),
  });
  const rate = { formula: "1 / {Goal}", result: { type: "number", options: { precision: 2 } } };
  const failing = {
    name: "Failing",
    fields: [
      { ...FIELDS[3]!, name: "Goal" },
      { name: "Rate", type: "formula", options: rate },
    ],
    records: Array.from({ length: 30 }, (_, index) => ({ fields: { Goal: index === 25 ? 0 : 1 } })),
  };
  baseId = stack.sandbox.control.createBase({
    name: "Things",
    tables: [table("Plain", false), table("Odd", true), failing],
  });
  base = await stack.connect(baseId);
  await base.sync();
  await read("Plain?maxRecords=1");
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Row {
  id: string;
  fields: Record<string, unknown>;
}

async function read(path: string, through: "proxy" | "source" = "proxy") {
  const address = through === "proxy" ? stack.endpoint : stack.sandbox.url;
  const response = await fetch(`${address}/v0/${baseId}/${path}`, {
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "x-basetide-read": "replica" },
  });
  return {
    by: response.headers.get("x-basetide-answered-by"),
    status: response.status,
    json: (await response.json()) as { records: Row[]; offset?: string },
  };
}

/** All pages. */
async function all(path: string, through?: "source"): Promise<{ isReplicas: boolean; records: Row[] }> {
  const records: Row[] = [];
  let [isReplicas, offset]: [boolean, string | undefined] = [false, undefined];
  do {
    const page = await read(
      offset === undefined ? path : `${path}&offset=${encodeURIComponent(offset)}`,
      through,
    );
    expect(page.status, path).toBe(200);
    isReplicas = page.by === "replica";
    records.push(...page.json.records);
    offset = page.json.offset;
  } while (offset !== undefined);
  return { isReplicas, records };
}

const byId = (records: Row[]) => records.toSorted((a, b) => (a.id < b.id ? -1 : 1));

/** Compares the answer with the source's. @returns whether the replica gave it */
async function isExact(table: string, formula: string): Promise<boolean> {
  const path = `${table}?filterByFormula=${encodeURIComponent(formula)}`;
  const [ours, theirs] = [await all(path), await all(path, "source")];
  expect(byId(ours.records), formula).toEqual(byId(theirs.records));
  return ours.isReplicas;
}

const EXAMPLES: Record<string, string[]> = {
  AND: [
    "AND({Done}, {Age} > 3)",
    "AND({Name} = 'Ada')",
    "AND({Done}, AND({Born}, DATETIME_DIFF({Seen}, {Born}, 'days') > 0))",
  ],
  OR: ["OR({Name} = 'bob', {Age} < 3, {Stage} = 'done')"],
  XOR: ["XOR({Done}, {Age} > 3, {Name} = 'bob')"],
  NOT: ["NOT({Done})", "NOT(YEAR({Born}) = 1991)", "NOT(IS_AFTER({Born}, '1990-02-03'))"],
  IF: [
    "IF({Done}, {Age} > 3, {Name} = 'Ada')",
    "IF({Done}, {Name}, {Nick}) = 'Ada'",
    "IF({Age} > 4, {Done})",
  ],
  TRUE: ["{Done} = TRUE()"],
  FALSE: ["{Done} = FALSE()", "OR(FALSE(), {Done})"],
  BLANK: ["{Born} = BLANK()", "{Name} != BLANK()", "{Age} = BLANK()", "{Tags} = BLANK()"],
  RECORD_ID: ["RECORD_ID() = 'recNobody'", "RECORD_ID() != 'recNobody'"],
  CREATED_TIME: ["IS_AFTER(CREATED_TIME(), '2020-01-01')", "CREATED_TIME() < NOW()"],
  NOW: ["IS_BEFORE({Seen}, NOW())"],
  TODAY: ["IS_AFTER({Born}, TODAY())", "{Born} < TODAY()"],
  FIND: [
    "FIND('Ada', {Name})",
    "FIND('a', {Name}) > 0",
    "FIND('da', {Name} & {Nick}) = 0",
    "FIND('blue', {Tags})",
  ],
  LOWER: [
    "LOWER({Name}) = 'ada'",
    "FIND('ada', LOWER({Name}))",
    "LOWER({Name}) = LOWER('ADA')",
    "LOWER({Name}) = LOWER({Nick})",
  ],
  UPPER: ["UPPER({Name}) = 'ADA'", "UPPER({Name}) = {Loud}"],
  TRIM: ["TRIM({Name}) = 'Eve'"],
  LEN: ["LEN({Name}) > 3", "LEN({Name}) = 3", "LEN({Name} & {Nick}) < 5"],
  LEFT: ["LEFT({Name}, 2) = 'Ad'"],
  RIGHT: ["RIGHT({Name}, 1) = 'b'", "RIGHT({Name}, 50) = 'Ada'"],
  CONCATENATE: ["CONCATENATE({Name}, '-', {Nick}) = 'Ada-x'", "{Name} & '/' & {Stage} = 'bob/todo'"],
  ARRAYJOIN: ["FIND('red', ARRAYJOIN({Tags}, '; '))", "FIND('dark blue', ARRAYJOIN({Tags}))"],
  IS_AFTER: ["IS_AFTER({Born}, '1990-02-03')", "IS_AFTER({Seen}, '2026-01-02T03:04:05.000Z')"],
  IS_BEFORE: ["IS_BEFORE({Born}, '1990-02-03')", "IS_BEFORE({Born}, {Seen})"],
  IS_SAME: [
    "IS_SAME({Born}, '1990-02-03', 'month')",
    "IS_SAME({Seen}, '2026-01-02', 'day')",
    "IS_SAME({Born}, '1990-02-02')",
  ],
  DATEADD: [
    "IS_AFTER({Seen}, DATEADD('2026-03-31', -2, 'months'))",
    "IS_BEFORE({Born}, DATEADD(TODAY(), -7, 'days'))",
  ],
  SWITCH: [
    "SWITCH({Stage}, 'todo', {Done}, 'done', {Age} > 3)",
    "SWITCH({Name}, 'Ada', 'x', 'bob', {Nick}, 'kim') = 'x'",
    "SWITCH({Goal}, 1, 'a', 2, 'b', 'c') = 'c'",
  ],
  MID: ["MID({Name}, 2, 2) = 'da'", "MID({Name} & {Nick}, 4, 100) = 'x'"],
  SUBSTITUTE: ["SUBSTITUTE({Name}, 'a', '') = 'Ad'", "FIND('L', SUBSTITUTE({Name}, 'ADA ', ''))"],
  DATETIME_PARSE: [
    "IS_AFTER({Born}, DATETIME_PARSE('1990-02-03'))",
    "{Born} < DATETIME_PARSE('1990-02-03', 'YYYY-MM-DD')",
  ],
  DATETIME_FORMAT: [
    "DATETIME_FORMAT({Born}, 'YYYY-MM-DD') = '1990-02-02'",
    "DATETIME_FORMAT({Seen}, 'D.M.YYYY, HH:mm:ss') != '1.1.2026, 00:04:00'",
    "FIND('T03', DATETIME_FORMAT({Seen}, 'YYYY-MM-DDTHH'))",
  ],
  YEAR: ["YEAR({Born}) = 1990", "YEAR(TODAY()) > 2000"],
  MONTH: ["MONTH({Born}) = 2", "MONTH({Born})"],
  DAY: ["DAY({Seen}) < 3"],
  HOUR: ["HOUR({Seen}) >= 3", "HOUR({Seen})"],
  MINUTE: ["MINUTE({Seen}) = 4"],
  SECOND: ["SECOND({Seen}) > 5"],
  WEEKDAY: ["WEEKDAY({Born}) = 5", "NOT(WEEKDAY({Born}) = 0)"],
  DATETIME_DIFF: [
    "DATETIME_DIFF({Seen}, '2026-01-01', 'hours') > 30",
    "DATETIME_DIFF('2026-01-01', {Seen}, 'd') = -1",
  ],
};

test("every translated function has examples", () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual(Object.keys(translatedFunctions).sort());
});

test.each(Object.entries(EXAMPLES))("%s: the replica's answers are the source's", async (_name, formulas) => {
  for (const formula of formulas) {
    expect(await isExact("Plain", formula), formula).toBe(true);
    await isExact("Odd", formula);
  }
});

test.each([
  "{Age} < 30",
  "{Age} = 0",
  "{Age} = BLANK()",
  "LEN({Name}) = 6",
  "UPPER({Name}) = 'STRASSE'",
  "NOT(IS_AFTER({Born}, '1990-02-03'))",
])("%s is left to the source while a row may get another result", async (formula) => {
  expect(await isExact("Odd", formula)).toBe(false);
});

test.each([
  "IS_AFTER({Born}, '1990-02-03')",
  "FIND('Ada', {Name})",
  "AND({Age} < 30, {Age} > 0)",
  "{Age} > 3",
  "{Born}",
  "{Tags} = 'red'",
])("%s is known for all rows", async (formula) => {
  expect(await isExact("Odd", formula)).toBe(true);
});

const column = (...names: string[]) => fc.constantFrom(...names.map((name) => `{${name}}`));
const { condition } = fc.letrec<{ text: string; condition: string }>((tie) => {
  const date = fc.oneof(
    column("Born", "Seen"),
    fc.constantFrom("'1990-02-03'", "TODAY()", "'2026-01-02T01:00:00Z'"),
  );
  return {
    text: fc.oneof(
      { depthSize: "small" },
      column("Name", "Nick", "Loud", "Stage"),
      fc.tuple(fc.constantFrom("LOWER", "UPPER", "TRIM"), tie("text")).map(([name, of]) => `${name}(${of})`),
      fc
        .tuple(fc.constantFrom("LEFT", "RIGHT"), tie("text"), fc.nat(4))
        .map(([name, of, n]) => `${name}(${of}, ${n})`),
      fc.tuple(tie("text"), tie("text")).map(([a, b]) => `CONCATENATE(${a}, ${b})`),
      fc.tuple(tie("text"), fc.nat(3), fc.nat(4)).map(([of, from, n]) => `MID(${of}, ${from + 1}, ${n})`),
      tie("text").map((of) => `SUBSTITUTE(${of}, 'a', 'b')`),
      fc
        .tuple(date, fc.constantFrom("YYYY-MM-DD", "D/M", "HH:mm:ss"))
        .map(([of, format]) => `DATETIME_FORMAT(${of}, '${format}')`),
    ),
    condition: fc.oneof(
      { depthSize: "small" },
      column("Done", "Name", "Age", "Born", "Tags", "Twice"),
      fc
        .tuple(
          tie("text"),
          fc.constantFrom("=", "!="),
          fc.constantFrom("'Ada'", "'ada'", "''", "'kim'", "{Nick}"),
        )
        .map((parts) => `(${parts.join(" ")})`),
      fc
        .tuple(fc.constantFrom("ada", "A", "k", "i", "ß"), tie("text"))
        .map(([needle, of]) => `FIND('${needle}', ${of})`),
      fc
        .tuple(
          column("Age", "Goal", "Twice"),
          fc.constantFrom("=", "!=", "<", ">", "<=", ">="),
          fc.constantFrom("2", "0", "{Goal}"),
        )
        .map((parts) => `(${parts.join(" ")})`),
      fc
        .tuple(fc.constantFrom("IS_AFTER", "IS_BEFORE", "IS_SAME"), date, date)
        .map(([name, a, b]) => `${name}(${a}, ${b})`),
      fc
        .tuple(date, date, fc.constantFrom("day", "month", "year", "hour"))
        .map(([a, b, unit]) => `IS_SAME(${a}, ${b}, '${unit}')`),
      fc
        .tuple(
          fc.constantFrom("YEAR", "MONTH", "DAY", "HOUR", "SECOND", "WEEKDAY"),
          date,
          fc.integer({ min: 0, max: 5 }),
        )
        .map(([name, of, n]) => `(${name}(${of}) > ${n})`),
      fc
        .tuple(column("Name", "Stage"), tie("condition"), tie("condition"))
        .map(([of, a, b]) => `SWITCH(${of}, 'Ada', ${a}, 'todo', ${b})`),
      fc
        .tuple(date, date, fc.integer({ min: -40, max: 40 }))
        .map(([a, b, n]) => `(DATETIME_DIFF(${a}, ${b}, 'days') > ${n})`),
      fc
        .tuple(
          fc.constantFrom("AND", "OR", "XOR"),
          fc.array(tie("condition"), { minLength: 1, maxLength: 3 }),
        )
        .map(([name, of]) => `${name}(${of.join(", ")})`),
      tie("condition").map((of) => `NOT(${of})`),
      fc.tuple(tie("condition"), tie("condition"), tie("condition")).map((of) => `IF(${of.join(", ")})`),
    ),
  };
});

test.each(["Plain", "Odd"])(
  "random formulas over %s judge as the source does",
  { timeout: 120_000 },
  async (table) => {
    let replicas = 0;
    const judge = async (formula: string) => {
      if (await isExact(table, formula)) replicas++;
    };
    await fc.assert(fc.asyncProperty(condition, judge), { numRuns: Number(process.env.FUZZ_RUNS ?? 1) * 60 });
    expect(replicas).toBeGreaterThan(10);
  },
);

const SORTABLE = ["Age", "Goal", "Done", "Born", "Seen", "Stage", "Twice", "Made", "Edited"];

test("a time of which SQL has only the date is read, and the source sorts and searches by it", async () => {
  const of = async (query: string) => (await read(`Plain?fields%5B%5D=Changed&${query}`)).by;
  expect(await of("maxRecords=1")).toBe("replica");
  expect(await of("sort%5B0%5D%5Bfield%5D=Changed")).toBe("source");
  expect(await of(`filterByFormula=${encodeURIComponent("IS_AFTER({Changed}, '2020-01-01')")}`)).toBe(
    "source",
  );
  expect(await of(`filterByFormula=${encodeURIComponent("IS_AFTER({Edited}, '2020-01-01')")}`)).toBe(
    "replica",
  );
});

test.each(["Plain", "Odd"])(
  "lists of %s are sorted as the source sorts",
  { timeout: 120_000 },
  async (table) => {
    const key = fc.record({ field: fc.constantFrom(...SORTABLE), direction: fc.constantFrom("asc", "desc") });
    await fc.assert(
      fc.asyncProperty(
        fc.array(key, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 7, max: 100 }),
        async (keys, pageSize) => {
          const sort = keys.flatMap(({ field, direction }, index) => [
            `sort%5B${index}%5D%5Bfield%5D=${field}`,
            `sort%5B${index}%5D%5Bdirection%5D=${direction}`,
          ]);
          const path = `${table}?pageSize=${pageSize}&${sort.join("&")}`;
          const [ours, theirs] = [await all(path), await all(path, "source")];
          expect(ours.isReplicas).toBe(true);
          // The source's order of records with equal keys is not defined.
          const keysOf = ({ fields }: Row) => keys.map(({ field }) => fields[field] ?? null);
          expect(ours.records.map(keysOf), path).toEqual(theirs.records.map(keysOf));
          expect(byId(ours.records)).toEqual(byId(theirs.records));
        },
      ),
      { numRuns: 30 },
    );
  },
);

test("a sort by id, by POST and with a filter is the replica's", async () => {
  const { fields } = stack.sandbox.control.dump(baseId).tables[0]! as unknown as {
    fields: { id: string; name: string }[];
  };
  const body = {
    sort: [{ field: fields.find(({ name }) => name === "Stage")!.id, direction: "desc" }],
    filterByFormula: "{Done}",
    maxRecords: 12,
  };
  const response = await fetch(`${stack.endpoint}/v0/${baseId}/Plain/listRecords`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${stack.sandbox.key}`,
      "content-type": "application/json",
      "x-basetide-read": "replica",
    },
    body: JSON.stringify(body),
  });
  expect(response.headers.get("x-basetide-answered-by")).toBe("replica");
  const { records } = (await response.json()) as { records: Row[] };
  expect(records.map(({ fields }) => fields.Stage)).toEqual(Array(12).fill("done").fill("doing", 9));
});

test("a select is sorted by its choices as the last sync found them; a newer choice is the source's to sort", async () => {
  const path = "Plain?maxRecords=100&sort%5B0%5D%5Bfield%5D=Stage";
  const { control } = stack.sandbox;
  const choices = ["done", "later", "todo", "doing"].map((name, index) => ({
    id: `selStage00000000${index}`,
    name,
  }));
  control.patchField(baseId, "Plain", "Stage", { options: { choices } });
  const { id } = control.dump(baseId).tables[0]!.records[5]!;
  control.updateRecords(baseId, "Plain", [{ id, fields: { Stage: "later" } }]);
  const stagesOf = ({ records }: { records: Row[] }) => records.map(({ fields }) => fields.Stage);
  const created = await fetch(`${stack.endpoint}/v0/${baseId}/Plain/${id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify({ fields: { Stage: "later" } }),
  });
  expect(created.status).toBe(200);
  expect((await all(path)).isReplicas).toBe(false);
  await base.sync();
  const [ours, theirs] = [await all(path), await all(path, "source")];
  expect(ours.isReplicas).toBe(true);
  expect(stagesOf(ours)).toEqual(stagesOf(theirs));
});

test("a list with a cell that does not fit on a later page is the source's from its first page", async () => {
  const last = await read("Failing?pageSize=100&fields%5B%5D=Goal");
  expect(last.by).toBe("replica");
  expect((await read("Failing?pageSize=5")).by).toBe("source");
  // What the formula sees of the cell is not in SQL.
  expect(
    (await read(`Failing?fields%5B%5D=Goal&filterByFormula=${encodeURIComponent("{Rate} > 1")}`)).by,
  ).toBe("source");
  expect((await read("Failing?fields%5B%5D=Goal&sort%5B0%5D%5Bfield%5D=Rate")).by).toBe("source");
});

test.each([
  "sort%5B0%5D%5Bfield%5D=Name",
  "sort%5B0%5D%5Bfield%5D=Age&sort%5B1%5D%5Bfield%5D=Tags",
  "sort%5B0%5D%5Bfield%5D=Loud",
  "sort%5B0%5D%5Bfield%5D=Nobody",
  "sort%5B0%5D%5Bfield%5D=Age&sort%5B0%5D%5Bdirection%5D=up",
  "sort%5B0%5D%5Bdirection%5D=asc",
])("%s is the source's to sort", async (query) => {
  expect((await read(`Plain?${query}`)).by).not.toBe("replica");
});
