/** Lists of the sandbox: paging, iterators, parameters, caches, gzip. */
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxHandle } from "../../../apps/sandbox/server";
import { call, crew, errorOf, type Json, PEOPLE, quietSandbox, TEAMS } from "../../support/sandbox-support";

let sandbox: SandboxHandle;
let baseId: string;

beforeAll(async () => {
  sandbox = await quietSandbox();
});
afterAll(() => sandbox.stop());
beforeEach(() => {
  sandbox.control.reset();
  sandbox.control.settings({ rateLimitOff: true });
  baseId = crew(sandbox);
});

const list = (query = "", table = PEOPLE) =>
  call(sandbox, "GET", `/${baseId}/${encodeURIComponent(table)}?${query}`);
const namesIn = (body: Json) => (body.records as unknown as Json[]).map((record) => record.fields?.Name);

/** All pages of a list. */
async function pagesOf(table: string, query: string, base = baseId): Promise<Json[][]> {
  const pages: Json[][] = [];
  let offset: string | undefined = "";
  while (offset !== undefined) {
    const answer = await call(
      sandbox,
      "GET",
      `/${base}/${table}?${query}&offset=${encodeURIComponent(offset)}`,
    );
    expect(answer.status).toBe(200);
    pages.push(answer.body.records as unknown as Json[]);
    offset = answer.body.offset as unknown as string | undefined;
  }
  return pages;
}

describe("paging", () => {
  test("every record comes once, and maxRecords caps all pages together", async () => {
    const id = sandbox.control.generate({ records: 237 });
    const all = (await pagesOf("Projects", "", id)).map((page) => page.length);
    expect(all).toEqual([100, 100, 37]);
    const capped = await pagesOf("Projects", "pageSize=10&maxRecords=25", id);
    expect(capped.map((page) => page.length)).toEqual([10, 10, 5]);
    const ids = (await pagesOf("Projects", "pageSize=50", id)).flat().map((record) => record.id);
    expect(new Set(ids).size).toBe(237);
  });

  test("an empty table is exactly an empty list", async () => {
    const id = sandbox.control.generate({ records: 0 });
    expect((await call(sandbox, "GET", `/${id}/Projects`)).body).toEqual({ records: [] });
  });

  test("L1: later pages show rows as they are now, without rows that went, without rows that came", async () => {
    const first = (await list("pageSize=1")).body;
    sandbox.control.updateRecords(baseId, PEOPLE, [{ id: "recCat00000000003", fields: { Age: 9 } }]);
    sandbox.control.deleteRecords(baseId, PEOPLE, ["recBob00000000002"]);
    sandbox.control.createRecords(baseId, PEOPLE, [{ fields: { Name: "New" } }]);
    const second = (await list(`pageSize=1&offset=${first.offset}`)).body;
    expect(second.records).toEqual([]);
    const third = (await list(`pageSize=1&offset=${second.offset}`)).body;
    expect(third.records).toMatchObject([{ fields: { Name: "Cat", Age: 9 } }]);
    expect(third).not.toHaveProperty("offset");
    // A token can be used again.
    expect((await list(`pageSize=1&offset=${first.offset}`)).body.offset).toEqual(second.offset);
  });

  test("an iterator that is old, killed, foreign or made up is gone", async () => {
    const lost = [422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE", undefined];
    const offset = async () => (await list("pageSize=1")).body.offset as unknown as string;
    const old = await offset();
    sandbox.control.settings({ iteratorLifeMs: 1000 });
    sandbox.control.advanceClock(900);
    expect((await list(`offset=${old}`)).status).toBe(200);
    sandbox.control.advanceClock(900);
    expect((await list(`offset=${old}`)).status).toBe(200);
    sandbox.control.advanceClock(1001);
    expect(errorOf(await list(`offset=${old}`))).toEqual(lost);
    expect(errorOf(await list(`offset=${await offset()}`, "Teams"))).toEqual(lost);
    expect(errorOf(await list("offset=itrNothing0000001/recAnn00000000001"))).toEqual(lost);
    const killed = await offset();
    sandbox.control.killIterators();
    expect(errorOf(await list(`offset=${killed}`))).toEqual(lost);
  });
});

describe("parameters", () => {
  test.for([
    "fields[]=Name&fields[]=fldAge00000000001",
    "fields%5B%5D=Name&fields%5B%5D=Age",
    "fields=Name&fields=Age",
    "fields[0]=Name&fields[1]=Age",
  ])("fields are taken as %s", async (query) => {
    const { body } = await list(`${query}&sort[0][field]=Name&sort%5B0%5D%5Bdirection%5D=desc&pageSize=2`);
    expect(body.records).toMatchObject([{ fields: { Name: "Cat" } }, { fields: { Name: "Bob", Age: 0 } }]);
    expect(Object.keys(body.records?.[1]?.fields ?? {})).toEqual(["Name", "Age"]);
  });

  test("a filter reads + as a blank, knows computed and linked cells, and keeps ids apart from text", async () => {
    expect(namesIn((await list("filterByFormula=%7BAge%7D+%3D+0+%2B+41")).body)).toEqual(["Ann"]);
    const filtered = async (formula: string) =>
      namesIn((await list(`filterByFormula=${encodeURIComponent(formula)}`)).body);
    expect(await filtered("FIND('Deck',{Team})")).toEqual(["Ann"]);
    expect(await filtered("OR(RECORD_ID()='recCat00000000003',RECORD_ID()='recNobody00000001')")).toEqual([
      "Cat",
    ]);
    expect(await filtered("IS_AFTER(CREATED_TIME(),'2024-03-01T10:00:00.000Z')")).toEqual(["Bob", "Cat"]);
    expect(await filtered("{Active}")).toEqual(["Cat"]);
  });

  test.for([
    ["bad(", "Invalid formula. Please check your formula text."],
    ["{Date Added}=1", "Unknown field names: date added"],
    ["NOPE(1)", "Unknown function names: nope"],
  ])("the filter %s is refused", async ([formula, message]) => {
    const answer = await list(`filterByFormula=${encodeURIComponent(formula!)}`);
    expect(errorOf(answer)).toEqual([
      422,
      "INVALID_FILTER_BY_FORMULA",
      `The formula for filtering records is invalid: ${message}`,
    ]);
  });

  test("sorting puts blanks first, selects in the order of their choices, numbers by size", async () => {
    const sorted = async (field: string, direction = "asc") =>
      namesIn((await list(`sort[0][field]=${field}&sort[0][direction]=${direction}`)).body);
    await call(sandbox, "PATCH", `/${baseId}/${PEOPLE}/recCat00000000003`, { fields: { Role: "Cook" } });
    expect(await sorted("Role")).toEqual(["Ann", "Cat", "Bob"]);
    expect(await sorted("Role", "desc")).toEqual(["Bob", "Cat", "Ann"]);
    expect(await sorted("Age")).toEqual(["Cat", "Bob", "Ann"]);
  });

  test.for([
    "pageSize=101",
    "pageSize=0",
    "maxRecords=x",
    "nonsense=1",
    "sort[0][field]=Name&sort[0][direction]=up",
    "cellFormat=string",
    "cellFormat=string&timeZone=Nowhere/Land&userLocale=en",
    "returnFieldsByFieldId=maybe",
  ])("%s is refused", async (query) => {
    expect(errorOf(await list(query)).slice(0, 2)).toEqual([422, "INVALID_REQUEST_UNKNOWN"]);
  });

  test("an unknown field or view is named; a lenient sandbox lets unknown parameters pass", async () => {
    expect(errorOf(await list("fields[]=Nope"))[1]).toBe("UNKNOWN_FIELD_NAME");
    expect(errorOf(await list("view=Nope"))[1]).toBe("VIEW_NAME_NOT_FOUND");
    expect(errorOf(await list("view=viw00000000000001"))[1]).toBe("VIEW_ID_NOT_FOUND");
    sandbox.control.settings({ strictQuery: false });
    expect((await list("nonsense=1")).status).toBe(200);
  });

  test("cellFormat=string gives what people read", async () => {
    const { body } = await list("cellFormat=string&timeZone=utc&userLocale=de&pageSize=1&maxRecords=1");
    expect(body.records?.[0]?.fields).toMatchObject({ Name: "Ann", Age: "41", Team: "Deck" });
  });

  test("listRecords takes the same as a body, with zone and locale in the query", async () => {
    const post = (body: unknown, query = "") =>
      call(sandbox, "POST", `/${baseId}/${PEOPLE}/listRecords?${query}`, body);
    const options = { pageSize: 1, fields: ["Name"], sort: [{ field: "Name", direction: "desc" }] };
    const first = (await post({ ...options, method: "post" })).body;
    const second = (await post({ ...options, offset: first.offset })).body;
    expect([namesIn(first), namesIn(second)]).toEqual([["Cat"], ["Bob"]]);
    expect((await post({ cellFormat: "string" }, "timeZone=utc&userLocale=en")).status).toBe(200);
    expect((await post({ limit: 1 })).status).toBe(422);
    expect(errorOf(await post("{"))[1]).toBe("INVALID_REQUEST_BODY");
  });

  test("odd but legal URLs lead to the same list", async () => {
    const expected = (await list("pageSize=100")).body;
    for (const path of [
      `/${baseId}/People%20%2F%20staff`,
      `/${baseId}/People%20%2f%20staff/?`,
      `//${baseId}//${PEOPLE}//?limit=100`,
      `/${baseId}/${PEOPLE}?offset=&view=&`,
    ])
      expect((await call(sandbox, "GET", path)).body).toEqual(expected);
  });

  test("a URL of 16,000 characters is taken, a longer one is not", async () => {
    const path = `/${baseId}/${PEOPLE}?filterByFormula=`;
    const formula = (length: number) => `1%3D1${"+".repeat(length - path.length - "/v01%3D1".length)}`;
    expect((await call(sandbox, "GET", path + formula(16_000))).status).toBe(200);
    expect((await call(sandbox, "GET", path + formula(16_001))).status).toBe(414);
  });
});

describe("caches", () => {
  test("a cached page shows every change of what stands in it", async () => {
    const label = async () => (await list("", "Teams")).body.records?.[0]?.fields;
    expect(await label()).toMatchObject({ Ages: 41 });
    await call(sandbox, "PATCH", `/${baseId}/${PEOPLE}/recAnn00000000001`, { fields: { Age: 50 } });
    expect(await label()).toMatchObject({ Ages: 50 });
    sandbox.control.renameField(baseId, TEAMS, "Ages", "Years");
    expect(await label()).toMatchObject({ Years: 50 });
    sandbox.control.deleteRecords(baseId, PEOPLE, ["recAnn00000000001"]);
    expect(await label()).toMatchObject({ Years: 0 });
    expect(namesIn((await list()).body)).toEqual(["Bob", "Cat"]);
  });

  test("a formula that asks for the time is never old", async () => {
    sandbox.control.addField(baseId, TEAMS, {
      name: "Now",
      type: "formula",
      options: { formula: "DATETIME_FORMAT(NOW(),'YYYY')" },
    });
    const year = async () => (await list("", "Teams")).body.records?.[0]?.fields?.Now;
    const before = Number(await year());
    sandbox.control.advanceClock(366 * 86_400_000);
    expect(Number(await year())).toBeGreaterThan(before);
  });

  test("gzip holds the same bytes as plain, with attachments and offsets filled in", async () => {
    const id = sandbox.control.generate({ records: 150, fieldsPerTable: 32, seed: 4 });
    const bytes = async (encoding: string) => {
      const response = await fetch(`${sandbox.url}/v0/${id}/Projects?pageSize=100`, {
        headers: { authorization: `Bearer ${sandbox.key}`, "accept-encoding": encoding },
        decompress: false,
      });
      const body = Buffer.from(await response.arrayBuffer());
      const isGzip = response.headers.get("content-encoding") === "gzip";
      expect(isGzip).toBe(encoding === "gzip");
      const plain = isGzip ? gunzipSync(body) : body;
      expect(response.headers.get("airtable-uncompressed-content-length")).toBe(String(plain.length));
      return plain.toString();
    };
    const [plain, gzip, again] = [await bytes("identity"), await bytes("gzip"), await bytes("gzip")];
    const steady = (text: string) => text.replaceAll(/\/u\/[^/]{41}\//g, "/u/-/").replace(/itr\w{14}/, "itr");
    expect(steady(gzip)).toBe(steady(plain));
    expect(steady(again)).toBe(steady(plain));
    expect(again).not.toBe(gzip);
    expect(plain).toContain(`${sandbox.url}/v3/u/`);
    expect(() => JSON.parse(again)).not.toThrow();
  });
});
