/** Lists of the sandbox: paging, iterators, parameters, caches, gzip. */
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { errorOf, type Json, PEOPLE, sandboxScene, TEAMS } from "../../support/sandbox-support";

const scene = sandboxScene();

const list = (query = "", table = PEOPLE) =>
  scene.call("GET", `/${scene.baseId}/${encodeURIComponent(table)}?${query}`);
const namesIn = (body: Json) => (body.records as unknown as Json[]).map((record) => record.fields?.Name);

/** All pages of a list. */
async function pagesOf(table: string, query: string, base = scene.baseId): Promise<Json[][]> {
  const pages: Json[][] = [];
  let offset: string | undefined = "";
  while (offset !== undefined) {
    const answer = await scene.call("GET", `/${base}/${table}?${query}&offset=${encodeURIComponent(offset)}`);
    expect(answer.status).toBe(200);
    pages.push(answer.body.records as unknown as Json[]);
    offset = answer.body.offset as unknown as string | undefined;
  }
  return pages;
}

describe("paging", () => {
  test("every record is listed once, and maxRecords limits all pages together", async () => {
    const id = scene.sandbox.control.generate({ records: 237 });
    const all = (await pagesOf("Projects", "", id)).map((page) => page.length);
    expect(all).toEqual([100, 100, 37]);
    const capped = await pagesOf("Projects", "pageSize=10&maxRecords=25", id);
    expect(capped.map((page) => page.length)).toEqual([10, 10, 5]);
    const ids = (await pagesOf("Projects", "pageSize=50", id)).flat().map((record) => record.id);
    expect(new Set(ids).size).toBe(237);
  });

  test("lists that begin with the same record and are equally long have their own pages", async () => {
    for (const [name, id] of [
      ["Bob", "recBob00000000002"],
      ["Cat", "recCat00000000003"],
    ]) {
      const formula = `OR(RECORD_ID()='recAnn00000000001',RECORD_ID()='${id}')`;
      const { body } = await list(`filterByFormula=${encodeURIComponent(formula)}`);
      expect(namesIn(body)).toEqual(["Ann", name]);
    }
  });

  test("an empty table is exactly an empty list", async () => {
    const id = scene.sandbox.control.generate({ records: 0 });
    expect((await scene.call("GET", `/${id}/Projects`)).body).toEqual({ records: [] });
  });

  test("L1: later pages show rows in their current state, without deleted rows and without new ones", async () => {
    const first = (await list("pageSize=1")).body;
    scene.sandbox.control.updateRecords(scene.baseId, PEOPLE, [
      { id: "recCat00000000003", fields: { Age: 9 } },
    ]);
    scene.sandbox.control.deleteRecords(scene.baseId, PEOPLE, ["recBob00000000002"]);
    scene.sandbox.control.createRecords(scene.baseId, PEOPLE, [{ fields: { Name: "New" } }]);
    const second = (await list(`pageSize=1&offset=${first.offset}`)).body;
    expect(second.records).toEqual([]);
    const third = (await list(`pageSize=1&offset=${second.offset}`)).body;
    expect(third.records).toMatchObject([{ fields: { Name: "Cat", Age: 9 } }]);
    expect(third).not.toHaveProperty("offset");
    // A token can be used again.
    expect((await list(`pageSize=1&offset=${first.offset}`)).body.offset).toEqual(second.offset);
  });

  test("an old, closed, foreign or invented iterator is refused as expired", async () => {
    const lost = [422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE", undefined];
    const offset = async () => (await list("pageSize=1")).body.offset as unknown as string;
    const old = await offset();
    scene.sandbox.control.settings({ iteratorLifeMs: 1000 });
    scene.sandbox.control.advanceClock(900);
    expect((await list(`offset=${old}`)).status).toBe(200);
    scene.sandbox.control.advanceClock(900);
    expect((await list(`offset=${old}`)).status).toBe(200);
    scene.sandbox.control.advanceClock(1001);
    expect(errorOf(await list(`offset=${old}`))).toEqual(lost);
    expect(errorOf(await list(`offset=${await offset()}`, "Teams"))).toEqual(lost);
    expect(errorOf(await list("offset=itrNothing0000001/recAnn00000000001"))).toEqual(lost);
    const killed = await offset();
    scene.sandbox.control.killIterators();
    expect(errorOf(await list(`offset=${killed}`))).toEqual(lost);
  });
});

describe("parameters", () => {
  test.for([
    "fields[]=Name&fields[]=fldAge00000000001",
    "fields%5B%5D=Name&fields%5B%5D=Age",
    "fields=Name&fields=Age",
    "fields[0]=Name&fields[1]=Age",
  ])("fields are accepted as %s", async (query) => {
    const { body } = await list(`${query}&sort[0][field]=Name&sort%5B0%5D%5Bdirection%5D=desc&pageSize=2`);
    expect(body.records).toMatchObject([{ fields: { Name: "Cat" } }, { fields: { Name: "Bob", Age: 0 } }]);
    expect(Object.keys(body.records?.[1]?.fields ?? {})).toEqual(["Name", "Age"]);
  });

  test("a filter reads + as a blank, knows computed and linked cells, and distinguishes ids from text", async () => {
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

  test("sorting puts blanks first, choices in their order, numbers by size", async () => {
    const sorted = async (field: string, direction = "asc") =>
      namesIn((await list(`sort[0][field]=${field}&sort[0][direction]=${direction}`)).body);
    await scene.call("PATCH", `/${scene.baseId}/${PEOPLE}/recCat00000000003`, { fields: { Role: "Cook" } });
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

  test("an unknown field or view is named in the error; a lenient sandbox accepts unknown parameters", async () => {
    expect(errorOf(await list("fields[]=Nope"))[1]).toBe("UNKNOWN_FIELD_NAME");
    expect(errorOf(await list("view=Nope"))[1]).toBe("VIEW_NAME_NOT_FOUND");
    expect(errorOf(await list("view=viw00000000000001"))[1]).toBe("VIEW_ID_NOT_FOUND");
    scene.sandbox.control.settings({ strictQuery: false });
    expect((await list("nonsense=1")).status).toBe(200);
  });

  test("cellFormat=string returns formatted values", async () => {
    const { body } = await list("cellFormat=string&timeZone=utc&userLocale=de&pageSize=1&maxRecords=1");
    expect(body.records?.[0]?.fields).toMatchObject({ Name: "Ann", Age: "41", Team: "Deck" });
  });

  test("listRecords accepts the same in a body, with zone and locale in the query", async () => {
    const post = (body: unknown, query = "") =>
      scene.call("POST", `/${scene.baseId}/${PEOPLE}/listRecords?${query}`, body);
    const options = { pageSize: 1, fields: ["Name"], sort: [{ field: "Name", direction: "desc" }] };
    const first = (await post({ ...options, method: "post" })).body;
    const second = (await post({ ...options, offset: first.offset })).body;
    expect([namesIn(first), namesIn(second)]).toEqual([["Cat"], ["Bob"]]);
    expect((await post({ cellFormat: "string" }, "timeZone=utc&userLocale=en")).status).toBe(200);
    expect((await post({ limit: 1 })).status).toBe(422);
    expect(errorOf(await post("{"))[1]).toBe("INVALID_REQUEST_BODY");
  });

  test("unusual but valid URLs lead to the same list", async () => {
    const expected = (await list("pageSize=100")).body;
    for (const path of [
      `/${scene.baseId}/People%20%2F%20staff`,
      `/${scene.baseId}/People%20%2f%20staff/?`,
      `//${scene.baseId}//${PEOPLE}//?limit=100`,
      `/${scene.baseId}/${PEOPLE}?offset=&view=&`,
    ])
      expect((await scene.call("GET", path)).body).toEqual(expected);
  });

  test("a URL of 16,000 characters is accepted, a longer one is not", async () => {
    const path = `/${scene.baseId}/${PEOPLE}?filterByFormula=`;
    const formula = (length: number) => `1%3D1${"+".repeat(length - path.length - "/v01%3D1".length)}`;
    expect((await scene.call("GET", path + formula(16_000))).status).toBe(200);
    expect((await scene.call("GET", path + formula(16_001))).status).toBe(414);
  });
});

describe("caches", () => {
  test("a cached page shows every change of its records", async () => {
    const label = async () => (await list("", "Teams")).body.records?.[0]?.fields;
    expect(await label()).toMatchObject({ Ages: 41 });
    await scene.call("PATCH", `/${scene.baseId}/${PEOPLE}/recAnn00000000001`, { fields: { Age: 50 } });
    expect(await label()).toMatchObject({ Ages: 50 });
    scene.sandbox.control.renameField(scene.baseId, TEAMS, "Ages", "Years");
    expect(await label()).toMatchObject({ Years: 50 });
    scene.sandbox.control.deleteRecords(scene.baseId, PEOPLE, ["recAnn00000000001"]);
    expect(await label()).toMatchObject({ Years: 0 });
    expect(namesIn((await list()).body)).toEqual(["Bob", "Cat"]);
  });

  test("a formula that reads the time is never cached", async () => {
    scene.sandbox.control.addField(scene.baseId, TEAMS, {
      name: "Now",
      type: "formula",
      options: { formula: "DATETIME_FORMAT(NOW(),'YYYY')" },
    });
    const year = async () => (await list("", "Teams")).body.records?.[0]?.fields?.Now;
    const before = Number(await year());
    scene.sandbox.control.advanceClock(366 * 86_400_000);
    expect(Number(await year())).toBeGreaterThan(before);
  });

  test("gzip contains the same bytes as plain, including attachments and offsets", async () => {
    const id = scene.sandbox.control.generate({ records: 150, fieldsPerTable: 32, seed: 4 });
    const bytes = async (encoding: string) => {
      const response = await fetch(`${scene.sandbox.url}/v0/${id}/Projects?pageSize=100`, {
        headers: { authorization: `Bearer ${scene.sandbox.key}`, "accept-encoding": encoding },
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
    expect(plain).toContain(`${scene.sandbox.url}/v3/u/`);
    expect(() => JSON.parse(again)).not.toThrow();
  });
});
