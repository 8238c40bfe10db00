/** The sandbox's control interface: generated and loaded bases, user edits, keys, the log, also over HTTP. */
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { PageCache } from "../../../apps/sandbox/page-cache";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import { dataFolder, noDataReason } from "../../support/data";
import { call, crew, errorOf, type Json, PEOPLE, quietSandbox, TEAMS } from "../../support/sandbox-support";

let sandbox: SandboxHandle;

beforeAll(async () => {
  sandbox = await quietSandbox();
});
afterAll(() => sandbox.stop());
beforeEach(() => {
  sandbox.control.reset();
  sandbox.control.settings({ rateLimitOff: true });
});

const control = (method: string, path: string, body?: unknown) =>
  fetch(`${sandbox.url}/_sandbox/${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

/** Every record of a table as the API lists it, by field id. */
async function listed(baseId: string, tableId: string): Promise<Json[]> {
  const records: Json[] = [];
  let offset: string | undefined = "";
  while (offset !== undefined) {
    const query = `returnFieldsByFieldId=true&offset=${encodeURIComponent(offset)}`;
    const { body } = await call(sandbox, "GET", `/${baseId}/${tableId}?${query}`);
    records.push(...(body.records as unknown as Json[]));
    offset = body.offset as unknown as string | undefined;
  }
  return records;
}

test.each([
  ["of another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }],
  ["of another site, in an old browser", { origin: "https://evil.example" }],
  ["under a name that leads here", { "sec-fetch-site": "same-origin", host: "evil.example" }],
])("a page %s cannot control the sandbox", async (_whose, headers) => {
  const base = sandbox.control.generate({ records: 1 });
  const refused = await fetch(`${sandbox.url}/_sandbox/reset`, { method: "POST", headers });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("another site")]);
  expect(sandbox.control.dump(base).tables).not.toEqual([]);
  const own = { "sec-fetch-site": "same-origin", origin: sandbox.url };
  expect((await fetch(`${sandbox.url}/_sandbox/bases`, { headers: own })).status).toBe(200);
});

describe("clones", () => {
  const options = { records: 120, tables: 2, seed: 7, fieldsPerTable: 34 };
  const contents = (id: string) => JSON.stringify(sandbox.control.dump(id).tables);

  test("a clone answers like its original", async () => {
    const original = sandbox.control.generate(options);
    const { baseId } = (await (await control("POST", `bases/${original}/clone`)).json()) as {
      baseId: string;
    };
    const tableId = sandbox.control.dump(original).tables[0]!.id;
    const answers = async (id: string) =>
      JSON.stringify(await listed(id, tableId)).replaceAll(/\/v3\/u\/[^/]+/g, "");
    expect(baseId).not.toBe(original);
    expect(contents(baseId)).toBe(contents(original));
    expect((await answers(baseId)) === (await answers(original))).toBe(true);
  });

  test("clones have one copy of a page in the cache", async () => {
    // Without formulas that read the time.
    const original = sandbox.control.generate({ ...options, fieldsPerTable: 15 });
    const tableId = sandbox.control.dump(original).tables[0]!.id;
    const kept = vi.spyOn(PageCache.prototype, "keep");
    for (const id of [original, sandbox.control.cloneBase(original), sandbox.control.cloneBase(original)])
      await listed(id, tableId);
    expect(kept).toHaveBeenCalledOnce();
    kept.mockRestore();
  });

  test.each(["clone", "original"])("a change of the %s is not seen in the other", async (changed) => {
    const original = sandbox.control.generate(options);
    const clone = sandbox.control.cloneBase(original);
    const [one, other] = changed === "clone" ? [clone, original] : [original, clone];
    const table = sandbox.control.dump(one).tables[0]!;
    const field = (table.fields as { id: string; type: string }[]).find(
      ({ type }) => type === "singleLineText",
    )!;
    const path = `/${one}/${table.id}`;
    // Both are in the cache before the changes.
    await Promise.all([listed(one, table.id), listed(other, table.id)]);
    const before = contents(other);

    const record = { id: table.records[0]!.id, fields: { [field.id]: "by the API" } };
    const { status } = await call(sandbox, "PATCH", path, { records: [record] });
    expect(status).toBe(200);
    sandbox.control.updateRecords(one, table.id, [
      { id: table.records[1]!.id, fields: { [field.id]: "by a user" } },
    ]);
    sandbox.control.renameField(one, table.id, field.id, "Renamed");
    sandbox.control.deleteRecords(one, table.id, [table.records[2]!.id]);

    const [first, second] = (await listed(one, table.id)) as unknown as { fields: Json }[];
    expect(first!.fields[field.id]).toBe("by the API");
    expect(second!.fields[field.id]).toBe("by a user");
    expect(await listed(one, table.id)).toHaveLength(table.records.length - 1);
    expect(await listed(other, table.id)).toHaveLength(table.records.length);
    expect(contents(other)).toBe(before);
  });

  test("computed cells of a changed clone follow its own links", async () => {
    const original = sandbox.control.generate(options);
    const clone = sandbox.control.cloneBase(original);
    const [projects, tasks] = sandbox.control.dump(clone).tables;
    // The cache knows which tables a computed cell reads.
    await listed(clone, projects!.id);
    const primary = (tasks!.fields as { id: string }[])[0]!.id;
    sandbox.control.updateRecords(
      clone,
      tasks!.id,
      tasks!.records.map(({ id }) => ({ id, fields: { [primary]: `renamed ${id}` } })),
    );
    const listing = await listed(clone, projects!.id);
    const dumped = sandbox.control.dump(clone).tables[0]!.records;
    expect(listing.map(({ id }) => id)).toEqual(dumped.map(({ id }) => id));
    expect(JSON.stringify(listing)).toContain("renamed rec");
    expect(JSON.stringify(await listed(original, projects!.id))).not.toContain("renamed rec");
  });
});

describe("generated bases", () => {
  test("the same options give the same base, also in another sandbox; another seed gives another one", async () => {
    const options = { records: 90, tables: 3, seed: 7, fieldsPerTable: 34 };
    await using other = await quietSandbox();
    const [a, b] = [sandbox.control.generate(options), other.control.generate(options)];
    const stable = (text: string, url: string) => text.replaceAll(url, "");
    const dump = stable(JSON.stringify(sandbox.control.dump(a)), sandbox.url);
    expect(a).toBe(b);
    expect(stable(JSON.stringify(other.control.dump(b)), other.url)).toBe(dump);
    const c = sandbox.control.generate({ ...options, seed: 8 });
    expect(stable(JSON.stringify(sandbox.control.dump(c)), sandbox.url)).not.toBe(dump);
  });

  test("every record is listed once, with a mix of types, and links agree on both sides", async () => {
    const id = sandbox.control.generate({ records: 250, tables: 2, seed: 2, fieldsPerTable: 33 });
    const { tables } = sandbox.control.dump(id);
    const fields = tables[0]!.fields as { id: string; name: string; type: string }[];
    expect(new Set(fields.map((field) => field.type)).size).toBeGreaterThanOrEqual(30);
    const [link, back] = ["Related", "From Projects"].map(
      (name) =>
        tables.flatMap((table) => table.fields as typeof fields).find((field) => field.name === name)!.id,
    ) as [string, string];
    const pairs = (table: number, field: string, isReversed: boolean) =>
      tables[table]!.records.flatMap(({ id: from, fields: cells }) =>
        ((cells[field] ?? []) as string[]).map((to) => (isReversed ? `${to} ${from}` : `${from} ${to}`)),
      ).sort();
    expect(pairs(0, link, false).length).toBeGreaterThan(50);
    expect(pairs(0, link, false)).toEqual(pairs(1, back, true));
    const ids = (await listed(id, tables[0]!.id)).map((record) => String(record.id));
    expect(ids).toEqual(tables[0]!.records.map((record) => record.id));
  });
});

describe.skipIf(!dataFolder)(`loaded bases${dataFolder ? "" : ` (${noDataReason})`}`, () => {
  test.for(["cmip7-data-request", "unlocking-the-airwaves"])(
    "%s is answered cell by cell as captured",
    async (name) => {
      const id = sandbox.control.load({ folder: join(dataFolder!, name) });
      const schema = (await Bun.file(join(dataFolder!, name, "schema.json")).json()) as {
        tables: { id: string; fields: { id: string; name: string }[] }[];
      };
      const answered = (await call(sandbox, "GET", `/meta/bases/${id}/tables`)).body
        .tables as unknown as Json[];
      expect(answered.map(({ views: _views, ...table }) => table)).toEqual(schema.tables);
      for (const table of schema.tables) {
        const idOf = new Map(table.fields.map((field) => [field.name, field.id]));
        const captured = (await Bun.file(join(dataFolder!, name, `${table.id}.json`)).json()) as {
          fields: Record<string, unknown>;
        }[];
        const expected = captured.map((record) => ({
          ...record,
          fields: Object.fromEntries(
            Object.entries(record.fields)
              .filter(([, value]) => !(Array.isArray(value) && value.length === 0))
              .map(([field, value]) => [idOf.get(field)!, withoutUrls(value)]),
          ),
        }));
        expect((await listed(id, table.id)).map(withoutUrls)).toEqual(expected);
      }
    },
  );
});

/** Attachments are compared by id and name: their URLs and sizes are the sandbox's. */
function withoutUrls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, one) =>
    typeof one === "object" && one !== null && "filename" in one ? `${one.id} ${one.filename}` : one,
  );
}

test("a base with every kind of content is returned as it was loaded", async () => {
  const fields = Array.from({ length: 500 }, (_, i) => ({
    id: `fldMany${String(i).padStart(10, "0")}`,
    name: `Feld ${i} \u{1f30a}"\\`,
    type: i === 1 ? "quantumField" : "singleLineText",
    ...(i === 2 && { options: null }),
  }));
  const cells = JSON.parse(
    '["a\\u0000b", {"x":[1,null]}, 1e308, "\\ud83d", -0.1, [[]], {"error":"#ERROR!"}]',
  );
  const values = Object.fromEntries(cells.map((cell: unknown, i: number) => [fields[i]!.id, cell]));
  const answer = await control("POST", "bases", {
    id: "appAnything000001",
    tables: [
      {
        id: "tblAnything000001",
        name: "Ta/ble 'x' 🌊",
        fields,
        records: [{ id: "recAnything000001", fields: values }],
      },
    ],
  });
  expect(await answer.json()).toEqual({ baseId: "appAnything000001" });
  const [record] = await listed("appAnything000001", "Ta%2Fble%20'x'%20%F0%9F%8C%8A");
  expect(record!.fields).toEqual(values);
  const { body } = await call(sandbox, "GET", "/meta/bases/appAnything000001/tables");
  const shown = body.tables?.[0]?.fields as unknown as Json[];
  expect(shown).toHaveLength(500);
  expect(shown[1]).toMatchObject({ type: "quantumField" });
  expect(shown[2]).toMatchObject({ options: null });
  const text = JSON.stringify({
    error: { message: "There is already a base appAnything000001. Delete it first." },
  });
  const again = await control("POST", "bases", { id: "appAnything000001", tables: [] });
  expect([again.status, await again.text()]).toEqual([400, text]);
});

describe("edits in the user interface", () => {
  test("fields are added, renamed, moved, retyped and deleted, with their inverse and dependents", async () => {
    const baseId = crew(sandbox);
    const { control } = sandbox;
    const linkId = control.addField(baseId, TEAMS, {
      name: "Captain",
      type: "multipleRecordLinks",
      options: { linkedTableId: PEOPLE },
    });
    control.updateRecords(baseId, TEAMS, [
      { id: "recDeck0000000001", fields: { Captain: ["recBob00000000002"] } },
    ]);
    const names = (index: number) =>
      (control.dump(baseId).tables[index]!.fields as { name: string }[]).map((field) => field.name);
    const cell = (table: number, row: number, field: string) =>
      control.dump(baseId).tables[table]!.records[row]!.fields[field];
    expect(names(0).at(-1)).toBe("Teams");
    control.renameField(baseId, PEOPLE, "Age", "Years");
    control.moveField(baseId, PEOPLE, "Years", 0);
    expect(names(0)[0]).toBe("Years");
    control.retypeField(baseId, PEOPLE, "Years", "singleLineText");
    expect(cell(0, 0, "fldAge00000000001")).toBe("41");
    control.retypeField(baseId, PEOPLE, "Years", "singleSelect", { choices: [] });
    expect(cell(0, 1, "fldAge00000000001")).toBe("0");
    control.deleteField(baseId, TEAMS, "Members");
    expect(names(0)).not.toContain("Team");
    expect(cell(0, 0, "fldTeamSize000001")).toBeUndefined();
    expect(cell(1, 0, "fldHeads000000001")).toBe(0);
    expect(cell(1, 0, linkId)).toEqual(["recBob00000000002"]);
    expect(() => control.renameField(baseId, PEOPLE, "Years", "NAME")).toThrow(
      "DUPLICATE_OR_EMPTY_FIELD_NAME",
    );
    expect(() => control.deleteField(baseId, PEOPLE, "Name")).toThrow("primary");
  });

  test("a renamed choice changes every cell and no modification time", () => {
    const baseId = crew(sandbox);
    const bob = () => sandbox.control.dump(baseId).tables[0]!.records[1]!.fields;
    const before = bob().fldModified000001;
    sandbox.control.advanceClock(60_000);
    sandbox.control.renameChoice(baseId, PEOPLE, "Role", "Mate", "First mate");
    expect(bob()).toMatchObject({ fldRole0000000001: "First mate", fldModified000001: before });
  });

  test("tables are added and deleted, and the links to a deleted one with it", async () => {
    const baseId = crew(sandbox);
    sandbox.control.deleteTable(baseId, PEOPLE);
    const [teams] = sandbox.control.dump(baseId).tables;
    expect((teams!.fields as { name: string }[]).map((field) => field.name)).not.toContain("Members");
    const id = sandbox.control.addTable(baseId, {
      name: "Ships",
      fields: [{ name: "Name", type: "singleLineText" }],
    });
    sandbox.control.renameTable(baseId, "Ships", "Boats");
    const rawCells = { Name: { not: "a text" } };
    const [rec] = sandbox.control.createRecords(baseId, "Boats", [{ fields: rawCells }], { raw: true });
    const { body } = await call(sandbox, "GET", `/${baseId}/${id}`);
    expect(body.records).toMatchObject([{ id: rec, fields: rawCells }]);
    sandbox.control.deleteBase(baseId);
    expect((await call(sandbox, "GET", `/${baseId}/${id}`)).status).toBe(403);
  });

  test("the same edits can be made over HTTP", async () => {
    const baseId = crew(sandbox);
    const table = `bases/${baseId}/tables/${PEOPLE}`;
    const { ids } = (await (
      await control("POST", `${table}/records`, { records: [{ fields: { Name: "Ida" } }] })
    ).json()) as { ids: string[] };
    await control("PATCH", `${table}/records`, { records: [{ id: ids[0], fields: { Age: "7" } }] });
    await control("DELETE", `${table}/records`, { ids: ["recAnn00000000001"] });
    await control("POST", `${table}/fields`, {
      name: "Extra",
      type: "number",
      options: { precision: 0 },
      position: 1,
    });
    await control("PATCH", `${table}/fields/Role`, { choice: { from: "Mate", to: "M" }, name: "Rank" });
    await control("PATCH", `bases/${baseId}/tables/Teams`, { name: "Watches" });
    const dump = (await (await control("GET", `dump/${baseId}`)).json()) as ReturnType<
      typeof sandbox.control.dump
    >;
    expect(dump).toEqual(sandbox.control.dump(baseId));
    expect(dump.tables[1]!.name).toBe("Watches");
    expect((dump.tables[0]!.fields as { name: string }[]).slice(0, 2).map((field) => field.name)).toEqual([
      "Name",
      "Extra",
    ]);
    expect(
      dump.tables[0]!.records.map(({ fields }) => [
        fields.fldName0000000001,
        fields.fldAge00000000001,
        fields.fldRole0000000001,
      ]),
    ).toEqual([
      ["Bob", 0, "M"],
      ["Cat", undefined, undefined],
      ["Ida", 7, undefined],
    ]);
    const wrong = await control("DELETE", `${table}/fields/Nope`);
    expect([wrong.status, await wrong.json()]).toEqual([
      400,
      { error: { message: 'The table "People / staff" has no field "Nope".' } },
    ]);
    expect((await control("POST", "settings", { penaltyMs: "x" })).status).toBe(400);
    expect((await control("GET", "nonsense")).status).toBe(400);
  });
});

test("the log has each request with its arrival, key and status, and the summary counts them", async () => {
  const baseId = crew(sandbox);
  await call(sandbox, "GET", `/${baseId}/${PEOPLE}?pageSize=1`);
  await call(sandbox, "GET", `/${baseId}/Nope`);
  await call(sandbox, "GET", "/meta/whoami");
  expect(sandbox.control.log(baseId)).toMatchObject([
    { method: "GET", path: `/v0/${baseId}/${PEOPLE}?pageSize=1`, status: 200, tokenId: "patSandboxDefault" },
    { status: 403 },
  ]);
  const summary = (await (await control("GET", "log/summary")).json()) as Json;
  expect(summary).toMatchObject({
    requests: 3,
    rateLimited: 0,
    byStatus: { 200: 2, 403: 1 },
    bases: { [baseId]: { requests: 2, maxPerSecond: 2, rateLimited: 0 } },
  });
  await control("DELETE", "log");
  expect(sandbox.control.logSummary().requests).toBe(0);
});

describe("the metadata API", () => {
  const meta = (method: string, path: string, body?: unknown) =>
    call(sandbox, method, `/meta/bases${path}`, body);

  test("bases are listed with the key's role, a thousand to a page", async () => {
    const field = { name: "Name", type: "singleLineText" };
    for (let i = 0; i < 1001; i++)
      sandbox.control.createBase({ name: `B${i}`, tables: [{ name: "T", fields: [field] }] });
    const first = (await meta("GET", "")).body;
    expect(first.bases).toHaveLength(1000);
    const second = (await meta("GET", `?offset=${first.offset}`)).body;
    expect(second).toMatchObject({ bases: [{ name: "B1000", permissionLevel: "create" }] });
    expect(second).not.toHaveProperty("offset");
    const id = String(first.bases?.[3]?.id);
    const key = sandbox.control.createKey({ bases: { [id]: "comment" } });
    expect((await call(sandbox, "GET", "/meta/bases", undefined, key)).body).toEqual({
      bases: [{ id, name: "B3", permissionLevel: "comment" }],
    });
  });

  test("bases, tables and fields are created and renamed, and a link gets its inverse", async () => {
    const made = await meta("POST", "", {
      name: "New",
      workspaceId: "wsp1",
      tables: [{ name: "A", fields: [{ name: "Name", type: "singleLineText" }] }],
    });
    const [base, a] = [made.body.id, made.body.tables?.[0]?.id];
    const b = (await meta("POST", `/${base}/tables`, { name: "B", fields: [{ name: "N", type: "email" }] }))
      .body;
    expect(b).toMatchObject({
      name: "B",
      primaryFieldId: b.fields?.[0]?.id,
      views: [{ name: "Grid view", type: "grid" }],
    });
    const link = await meta("POST", `/${base}/tables/${a}/fields`, {
      name: "Link",
      type: "multipleRecordLinks",
      options: { linkedTableId: b.id },
    });
    const tables = (await meta("GET", `/${base}/tables?include=visibleFieldIds`)).body.tables;
    expect(tables?.[1]?.fields?.[1]).toMatchObject({
      name: "A",
      options: { inverseLinkFieldId: link.body.id },
    });
    expect(tables?.[1]?.views?.[0]).toMatchObject({
      visibleFieldIds: [b.fields?.[0]?.id, tables?.[1]?.fields?.[1]?.id],
    });
    expect((await meta("PATCH", `/${base}/tables/A`, { name: "AA" })).body.name).toBe("AA");
    const renamed = await meta("PATCH", `/${base}/tables/${a}/fields/${link.body.id}`, {
      name: "L",
      description: "d",
    });
    expect(renamed.body).toMatchObject({ name: "L", description: "d", type: "multipleRecordLinks" });
  });

  test.for([
    [{ name: "name", type: "number", options: { precision: 0 } }, "DUPLICATE_OR_EMPTY_FIELD_NAME"],
    [{ name: "", type: "singleLineText" }, "DUPLICATE_OR_EMPTY_FIELD_NAME"],
    [{ name: "X", type: "createdTime" }, "UNSUPPORTED_FIELD_TYPE_FOR_CREATE"],
    [{ name: "X", type: "dateTime", options: { timeZone: "UTC" } }, "INVALID_FIELD_TYPE_OPTIONS_FOR_CREATE"],
    [{ name: "X", type: "number" }, "INVALID_FIELD_TYPE_OPTIONS_FOR_CREATE"],
  ])("the field %j is refused as %s", async ([field, type]) => {
    const baseId = crew(sandbox);
    expect(errorOf(await meta("POST", `/${baseId}/tables/${PEOPLE}/fields`, field)).slice(0, 2)).toEqual([
      422,
      type,
    ]);
  });

  test("a second table of the same name is refused, whatever its case", async () => {
    const baseId = crew(sandbox);
    const table = { name: "TEAMS", fields: [{ name: "Name", type: "singleLineText" }] };
    expect(errorOf(await meta("POST", `/${baseId}/tables`, table))[1]).toBe("DUPLICATE_TABLE_NAME");
    expect(errorOf(await meta("PATCH", `/${baseId}/tables/${PEOPLE}`, { name: "teams" }))[1]).toBe(
      "DUPLICATE_TABLE_NAME",
    );
  });
});

test("a port in use is reported in one line that names the remedy", async () => {
  await expect(startSandbox({ port: sandbox.port })).rejects.toThrow(
    `Port ${sandbox.port} is in use by another program. Stop it, or set SANDBOX_PORT to another port.`,
  );
});
