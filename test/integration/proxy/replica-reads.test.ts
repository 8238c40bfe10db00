/** Reads that the replica answers: exactly the records that the source would return, or the source returns them. */
import Airtable from "airtable";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { updateSettings } from "../../../core/control/bases";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;
let base: Replicated;
let baseId: string;

const FIELDS = [
  { name: "Name", type: "singleLineText" },
  { name: "Age", type: "number", options: { precision: 2 } },
  { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
  { name: "Born", type: "date", options: { dateFormat: { name: "iso" } } },
  {
    name: "Seen",
    type: "dateTime",
    options: { dateFormat: { name: "iso" }, timeFormat: { name: "24hour" }, timeZone: "utc" },
  },
  { name: "Tags", type: "multipleSelects", options: { choices: [{ name: "red" }, { name: "blue" }] } },
  {
    name: "Loud",
    type: "formula",
    options: { formula: "UPPER({Name})", result: { type: "singleLineText" } },
  },
];

beforeAll(async () => {
  stack = await proxyStack();
  const names = ["Ada", "Bob", "it's", "", "Łódź 東京"];
  const records = Array.from({ length: 230 }, (_, index) => ({
    fields: {
      ...(index % 7 === 0 ? {} : { Name: names[index % names.length] }),
      ...(index % 3 === 0 ? {} : { Age: (index % 9) - 4 + (index % 2) / 4 }),
      ...(index % 2 === 0 ? { Done: true } : {}),
      ...(index % 5 === 0 ? { Born: `1990-02-0${(index % 9) + 1}` } : {}),
      ...(index % 4 === 0 ? { Seen: `2026-01-02T03:04:0${index % 10}.${(index % 9) + 1}00Z` } : {}),
      ...(index % 6 === 0 ? { Tags: ["red", "blue"] } : {}),
    },
  }));
  baseId = stack.sandbox.control.createBase({
    name: "People",
    tables: [
      { name: "People", fields: FIELDS, records },
      {
        name: "Files",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "File", type: "multipleAttachments" },
          { name: "Who", type: "singleCollaborator" },
          { name: "Time", type: "duration", options: { durationFormat: "h:mm" } },
        ],
        records: [
          { fields: { Name: "none" } },
          { fields: { Name: "a file", File: [{ url: "https://example.org/a.png", filename: "a.png" }] } },
          { fields: { Name: "none" } },
          { fields: { Name: "some time", Time: 60 } },
        ],
      },
    ],
  });
  base = await stack.connect(baseId);
  await base.sync();
  await read("People?maxRecords=1");
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

interface Options {
  header?: string | null | undefined;
  through?: "proxy" | "source";
  key?: string;
  body?: unknown;
}

async function read(path: string, options: Options = {}) {
  const { header = "replica", key = stack.sandbox.key, body, through = "proxy" } = options;
  const address = through === "proxy" ? stack.endpoint : stack.sandbox.url;
  const response = await fetch(`${address}/v0/${baseId}/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${key}`,
      ...(header === null ? {} : { "x-basetide-read": header }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const by = response.headers.get("x-basetide-answered-by");
  return {
    status: response.status,
    by,
    asOf: response.headers.get("x-basetide-as-of"),
    json: await response.json(),
  };
}

const SOURCE: Options = { header: null, through: "source" };

interface Answer {
  records: { id: string; createdTime: string; fields: unknown }[];
  offset?: string;
}

/** All pages, by id. */
async function all(
  query: string,
  options: Options = {},
): Promise<{ by: Set<string | null>; records: Answer["records"] }> {
  const by = new Set<string | null>();
  const records: Answer["records"] = [];
  let offset: string | undefined;
  do {
    const at = offset === undefined ? query : `${query}&offset=${encodeURIComponent(offset)}`;
    const page = await read(`People?${at}`, options);
    expect(page.status).toBe(200);
    by.add(page.by);
    records.push(...(page.json as Answer).records);
    ({ offset } = page.json as Answer);
  } while (offset !== undefined);
  return { by, records: records.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

const formulas = [
  "",
  "{Name} = 'Ada'",
  "{Name} != 'Ada'",
  'NOT({Name} = "it\'s")',
  "{Name} = ''",
  "{Name}",
  "{Age}",
  "{Age} > 1",
  "{Age} >= 0.25",
  "{Age} < -1",
  "{Age} != 2",
  "{Done}",
  "{Done} = 0",
  "AND({Done}, OR({Age} > 2, {Name} = 'Łódź 東京'))",
  "NOT(AND({Done}, {Age} = 3))",
];

test.each(formulas)("a list with the formula %s equals the source's, record by record", async (formula) => {
  const query = `pageSize=100&filterByFormula=${encodeURIComponent(formula)}`;
  const [ours, theirs] = await Promise.all([all(query), all(query, SOURCE)]);
  expect(ours.by).toEqual(new Set(["replica"]));
  expect(theirs.by).toEqual(new Set([null]));
  expect(ours.records).toEqual(theirs.records);
});

test("random formulas that are translated match the same records as at the source", {
  timeout: 60_000,
}, async () => {
  const comparison = fc.oneof(
    fc
      .tuple(fc.constantFrom("=", "!="), fc.constantFrom("Ada", "Bob", "it's", "", "x"))
      .map(([operator, text]) => `{Name} ${operator} "${text}"`),
    fc
      .tuple(fc.constantFrom("=", "!=", "<", ">", "<=", ">="), fc.integer({ min: -4, max: 5 }))
      .map(([operator, number]) => `{Age} ${operator} ${number}`),
    fc.constantFrom("{Done}", "{Done} = 1", "{Name}", "{Age}", "RECORD_ID() = 'recNobody'"),
  );
  const { formula } = fc.letrec<{ formula: string }>((tie) => ({
    formula: fc.oneof(
      { depthSize: "small" },
      comparison,
      fc
        .tuple(fc.constantFrom("AND", "OR"), fc.array(tie("formula"), { minLength: 1, maxLength: 3 }))
        .map(([name, of]) => `${name}(${of.join(", ")})`),
      tie("formula").map((of) => `NOT(${of})`),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(formula, async (text) => {
      const query = `filterByFormula=${encodeURIComponent(text)}`;
      const [ours, theirs] = await Promise.all([all(query), all(query, SOURCE)]);
      expect(ours.records).toEqual(theirs.records);
    }),
    { numRuns: 60 },
  );
});

test("selected fields, ids for names, one record, and a list by POST equal the source's answers", async () => {
  const query = "fields%5B%5D=Name&fields%5B%5D=Seen&returnFieldsByFieldId=true&maxRecords=130&pageSize=60";
  const ours = await all(query);
  expect(ours.by).toEqual(new Set(["replica"]));
  expect(ours.records).toHaveLength(130);
  const theirs = await all(query.replace("&maxRecords=130", ""), SOURCE);
  expect(theirs.records).toEqual(expect.arrayContaining(ours.records));

  const { id } = ours.records[7]!;
  const one = await read(`People/${id}`);
  expect(one.by).toBe("replica");
  expect(one.json).toEqual((await read(`People/${id}`, { header: null })).json);

  const posted = await read("People/listRecords", {
    body: { filterByFormula: "{Name} = 'Bob'", pageSize: 5 },
  });
  expect(posted.by).toBe("replica");
  expect((posted.json as Answer).records).toHaveLength(5);
  expect(Date.parse(posted.asOf!)).toBeLessThan(Date.now());
  const long = await read("People/listRecords", {
    body: { fields: Array(20_000).fill("Name"), pageSize: 1 },
  });
  expect(long).toMatchObject({ status: 200, by: null });
});

test("airtable.js pages through the replica's list", async () => {
  const requestHeaders = { "x-basetide-read": "replica" };
  const client = new Airtable({
    apiKey: stack.sandbox.key,
    endpointUrl: stack.endpoint,
    requestHeaders,
  } as never);
  const records = await client.base(baseId)("People").select({ pageSize: 50 }).all();
  expect(new Set(records.map((record) => record.id)).size).toBe(230);
});

test.each([
  ["a view", "People?view=Grid%20view"],
  ["a sort by text", "People?sort%5B0%5D%5Bfield%5D=Name"],
  ["a formula that is not translated", "People?filterByFormula=REGEX_MATCH(%7BName%7D%2C%27a%27)"],
  ["attachments", "Files"],
  ["a field that is not known", "People?fields%5B%5D=Nobody"],
  ["a table that is not known", "Nobody"],
  ["a record that is not there", "People/recNobody00000000"],
  ["a parameter that is not known", "People?strange=1"],
])("%s is answered by the source", async (_what, path) => {
  const ours = await read(path);
  expect(ours.by === "source" || ours.by === null).toBe(true);
  expect(ours.status).toBe((await read(path, { header: null })).status);
});

test("a field whose cells SQL has in part is in the replica's answers while it is empty in all records of the list", async () => {
  const where = (formula: string) => `Files?filterByFormula=${encodeURIComponent(formula)}`;
  await read("People?maxRecords=1");
  const whole = (await read("Files", SOURCE)).json as Answer;
  const idOf = (name: string) =>
    whole.records.find(({ fields }) => (fields as { Name?: string }).Name === name)!.id;
  const [none, file] = [idOf("none"), idOf("a file")];
  const inOrder = (answer: unknown) => {
    const { records } = answer as Partial<Answer>;
    return records?.sort((a, b) => (a.id < b.id ? -1 : 1)) ?? answer;
  };
  for (const [path, by] of [
    [`Files/${none}`, "replica"],
    [`Files/${file}`, "source"],
    [where("{Name} = 'none'"), "replica"],
    [where("{Name} = 'some time'"), "source"],
    ["Files?fields%5B%5D=Name&fields%5B%5D=Who", "replica"],
    ["Files?fields%5B%5D=Name&fields%5B%5D=Time", "source"],
  ]) {
    const ours = await read(path!);
    expect([path, ours.by]).toEqual([path, by]);
    if (by !== "replica") continue;
    const theirs = await read(path!, SOURCE);
    expect(inOrder(ours.json)).toEqual(inOrder(theirs.json));
  }
});

test("a list with an attachment on a later page is the source's from its first page", async () => {
  const first = (await read("Files?pageSize=1&fields%5B%5D=Name")).json as Answer;
  expect(first.records[0]!.fields).toEqual({ Name: expect.stringMatching(/./) });
  for (const pageSize of [1, 2, 3]) expect((await read(`Files?pageSize=${pageSize}`)).by).toBe("source");
});

test("the replica answers no key that the source has not accepted, and no request that does not ask for it", async () => {
  const stranger = await read("People?maxRecords=1", { key: "patStranger.1" });
  expect(stranger).toMatchObject({ status: 401, by: "source" });
  const again = await read("People?maxRecords=1", { key: "patStranger.1" });
  // It was just refused: it is not tried again.
  expect(again).toMatchObject({ status: 401, by: null, json: { sender: "proxy" } });
  const fresh = stack.sandbox.control.createKey({ bases: { [baseId]: "read" } });
  expect((await read("People?maxRecords=1", { key: fresh })).by).toBe("source");
  expect((await read("People?maxRecords=1", { key: fresh })).by).toBe("replica");
  expect((await read("People?maxRecords=1", { header: null })).by).toBeNull();
  expect((await read("People?maxRecords=1", { header: "no" })).by).toBeNull();
});

test("an offset of the replica's list is never sent to the source", async () => {
  await read("People?maxRecords=1");
  const first = await read("People?pageSize=1");
  const { offset } = first.json as Answer;
  expect(offset).toMatch(/^basetide\./);
  const lost = { status: 422, json: { error: { type: "LIST_RECORDS_ITERATOR_NOT_AVAILABLE" } } };
  expect(await read(`People?pageSize=1&offset=${offset}`, { header: null })).toMatchObject(lost);
  expect(await read(`People?pageSize=1&offset=basetide.x`)).toMatchObject(lost);
  expect(await read(`Files?pageSize=1&offset=${offset}`)).toMatchObject(lost);
});

test("a write through the proxy is in the replica's next answer", async () => {
  const created = await fetch(`${stack.endpoint}/v0/${baseId}/People`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.sandbox.key}`, "content-type": "application/json" },
    body: JSON.stringify({ records: [{ fields: { Name: "Eve", Age: 0, Tags: ["blue"] } }] }),
  });
  const [record] = ((await created.json()) as Answer).records;
  const found = await read(`People?filterByFormula=${encodeURIComponent("{Name} = 'Eve'")}`);
  expect(found).toMatchObject({ by: "replica", json: { records: [record] } });
});

test("a setting of the base makes the replica answer without the header", async () => {
  await updateSettings(stack.managed, base.base, { replicaReads: true });
  await expect
    .poll(async () => (await read("People?maxRecords=1", { header: null })).by, { timeout: 10_000 })
    .toBe("replica");
  expect((await read("People?maxRecords=1", { header: "source" })).by).toBeNull();
});
