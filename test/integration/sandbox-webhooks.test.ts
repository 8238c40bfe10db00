/** The sandbox's webhooks: calls, payloads, filters, computed cells, lives and pings. */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxHandle } from "../../apps/sandbox/server";
import { until } from "../support/poll";
import { call, crew, errorOf, PEOPLE, quietSandbox, type Reply, TEAMS } from "./sandbox-support";

const DAY_MS = 24 * 3600 * 1000;
const EVERYTHING = { options: { filters: { dataTypes: ["tableData", "tableFields", "tableMetadata"] } } };

// Payloads are compared whole: what they are made of is what is tested.
type Loose = ReturnType<typeof JSON.parse>;

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

const hooks = (method: string, path = "", body?: unknown, key?: string): Promise<Reply> =>
  call(sandbox, method, `/bases/${baseId}/webhooks${path}`, body, key);

async function made(specification: unknown = EVERYTHING, notificationUrl?: string): Promise<string> {
  const reply = await hooks("POST", "", { specification, ...(notificationUrl && { notificationUrl }) });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return String(reply.body.id);
}

const filtered = (filters: object, includes?: object) => ({
  options: { filters: { dataTypes: ["tableData"], ...filters }, ...(includes && { includes }) },
});

async function listed(id: string, query = ""): Promise<Loose> {
  const reply = await hooks("GET", `/${id}/payloads${query}`);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

const payloads = async (id: string): Promise<Loose[]> => (await listed(id)).payloads;

const rename = (name: string) =>
  sandbox.control.updateRecords(baseId, PEOPLE, [{ id: "recBob00000000002", fields: { Name: name } }]);

describe("the calls", () => {
  test("a hook is made with a secret and seven days, and listed as the reference shows it", async () => {
    const before = Date.now();
    const { body } = await hooks("POST", "", {
      notificationUrl: "http://127.0.0.1:9/",
      specification: EVERYTHING,
    });
    expect(Object.keys(body).sort()).toEqual(["expirationTime", "id", "macSecretBase64"]);
    expect(Buffer.from(String(body.macSecretBase64), "base64")).toHaveLength(32);
    expect(Date.parse(String(body.expirationTime)) - before).toBeGreaterThanOrEqual(7 * DAY_MS);
    expect((await hooks("GET")).body).toEqual({
      webhooks: [
        {
          id: body.id,
          specification: EVERYTHING,
          notificationUrl: "http://127.0.0.1:9/",
          cursorForNextPayload: 1,
          isHookEnabled: true,
          areNotificationsEnabled: true,
          expirationTime: body.expirationTime,
          lastSuccessfulNotificationTime: null,
          lastNotificationResult: null,
        },
      ],
    });
    expect((await hooks("DELETE", `/${body.id}`)).status).toBe(200);
    expect((await hooks("GET")).body).toEqual({ webhooks: [] });
    expect(errorOf(await hooks("GET", `/${body.id}/payloads`)).slice(0, 2)).toEqual([404, "NOT_FOUND"]);
  });

  test("an eleventh hook is refused, and an integration sees only its own two", async () => {
    const key = sandbox.control.createKey({ isOAuth: true });
    const post = (token?: string) => hooks("POST", "", { specification: EVERYTHING }, token);
    expect([(await post(key)).status, (await post(key)).status, (await post(key)).status]).toEqual([
      200, 200, 422,
    ]);
    for (let i = 0; i < 8; i++) expect((await post()).status).toBe(200);
    expect((await post()).status).toBe(422);
    expect((await hooks("GET")).body.webhooks).toHaveLength(10);
    expect((await hooks("GET", "", undefined, key)).body.webhooks).toHaveLength(2);
  });

  test.for<[string, string, string, string[], string, number]>([
    ["POST", "", "tableData", ["webhook:manage", "data.records:read"], "create", 200],
    ["POST", "", "tableData", ["webhook:manage", "data.records:read"], "edit", 403],
    ["POST", "", "tableData", ["webhook:manage", "schema.bases:read"], "create", 403],
    ["POST", "", "tableFields", ["webhook:manage", "data.records:read"], "create", 403],
    ["POST", "", "tableMetadata", ["webhook:manage", "schema.bases:read"], "create", 200],
    ["POST", "", "tableData", ["data.records:read"], "create", 403],
    ["GET", "/payloads", "tableData", ["webhook:manage", "data.records:read"], "read", 200],
    ["GET", "/payloads", "tableData", ["webhook:manage"], "read", 403],
    ["GET", "/payloads", "tableData", ["webhook:manage", "data.records:read"], "none", 403],
    ["DELETE", "", "tableData", ["webhook:manage"], "read", 403],
    ["POST", "/refresh", "tableData", ["webhook:manage"], "create", 200],
  ])("%s hook%s of %s with scopes %j as %s: %i", async ([method, verb, type, scopes, level, status]) => {
    const specification = filtered({ dataTypes: [type] });
    const isNew = method === "POST" && verb === "";
    const path = isNew ? "" : `/${await made(specification)}${verb}`;
    const key = sandbox.control.createKey({ scopes, bases: { [baseId]: level as "read" } });
    expect((await hooks(method, path, isNew ? { specification } : undefined, key)).status).toBe(status);
  });

  test.for<[string, unknown]>([
    ["no data types", { options: { filters: {} } }],
    ["a data type that there is not", filtered({ dataTypes: ["cells"] })],
    ["a scope by name", filtered({ recordChangeScope: "Teams" })],
    ["a change type that there is not", filtered({ changeTypes: ["move"] })],
    ["a source that there is not", filtered({ fromSources: ["people"] })],
    ["a field that there is not", filtered({ watchDataInFieldIds: ["fldNope0000000001"] })],
    ["a field by name in includes", filtered({}, { includeCellValuesInFieldIds: ["Name"] })],
    ["an include that is no boolean", filtered({}, { includePreviousCellValues: "yes" })],
    ["an unknown filter", filtered({ watch: [] })],
    ["no options", {}],
    ["nothing", undefined],
  ])("a specification with %s is refused", async ([, specification]) => {
    expect((await hooks("POST", "", { specification })).status).toBe(422);
  });

  test.for(["cursor=0", "cursor=-1", "cursor=x", "limit=51", "limit=0", "page=1"])(
    "payloads with %s are refused",
    async (query) => {
      expect((await hooks("GET", `/${await made()}/payloads?${query}`)).status).toBe(422);
    },
  );

  test("calls count against the base's five a second", async () => {
    const id = await made();
    sandbox.control.settings({ rateLimitOff: false });
    const statuses = await Promise.all(
      Array.from({ length: 6 }, async () => (await hooks("GET", `/${id}/payloads`)).status),
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 200, 429]);
  });
});

describe("payloads", () => {
  test("what people do is told with its user, cell by cell in the webhook's own format", async () => {
    sandbox.control.settings({ webhooks: { computedCells: "not emitted" } });
    const id = await made();
    const [rec] = sandbox.control.createRecords(baseId, PEOPLE, [
      {
        fields: {
          Name: "Dan",
          Role: "Cook",
          Skills: ["knots"],
          Team: ["recGalley00000002"],
          Owner: "ada@example.org",
          Active: true,
        },
      },
    ]);
    sandbox.control.updateRecords(baseId, PEOPLE, [{ id: rec!, fields: { Role: null, Age: 7 } }]);
    sandbox.control.deleteRecords(baseId, PEOPLE, [rec!]);
    const [first, second, third] = await payloads(id);
    expect(first).toEqual({
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      baseTransactionNumber: 1,
      payloadFormat: "v0",
      actionMetadata: {
        source: "client",
        sourceMetadata: {
          user: {
            id: "usrSandboxDefault",
            email: "sandbox@example.org",
            name: "Sandbox User",
            permissionLevel: "create",
          },
        },
      },
      changedTablesById: {
        [PEOPLE]: {
          createdRecordsById: {
            [rec!]: {
              createdTime: expect.stringMatching(/\.000Z$/),
              cellValuesByFieldId: {
                fldName0000000001: "Dan",
                fldActive00000001: true,
                fldRole0000000001: { id: "selCook0000000001", name: "Cook" },
                fldSkills00000001: [{ id: "selKnots000000001", name: "knots" }],
                fldTeam0000000001: [{ id: "recGalley00000002", name: "Galley" }],
                fldOwner000000001: {
                  id: "usrSandboxAda0001",
                  email: "ada@example.org",
                  name: "Ada Example",
                  permissionLevel: "create",
                },
              },
            },
          },
        },
        [TEAMS]: {
          changedRecordsById: {
            recGalley00000002: {
              current: { cellValuesByFieldId: { fldMembers0000001: [{ id: rec, name: "Dan" }] } },
            },
          },
        },
      },
    });
    expect(second.changedTablesById).toEqual({
      [PEOPLE]: {
        changedRecordsById: {
          [rec!]: { current: { cellValuesByFieldId: { fldRole0000000001: null, fldAge00000000001: 7 } } },
        },
      },
    });
    expect(third.changedTablesById).toEqual({
      [PEOPLE]: { destroyedRecordIds: [rec] },
      [TEAMS]: {
        changedRecordsById: {
          recGalley00000002: { current: { cellValuesByFieldId: { fldMembers0000001: null } } },
        },
      },
    });
  });

  test("writes by the API say so and name the token's user", async () => {
    const id = await made();
    const user = { id: "usrApi00000000001", email: "api@example.org" };
    const key = sandbox.control.createKey({ user });
    await call(sandbox, "PATCH", `/${baseId}/${PEOPLE}/recBob00000000002`, { fields: { Age: 5 } }, key);
    const [payload] = await payloads(id);
    expect(payload.actionMetadata).toEqual({
      source: "publicApi",
      sourceMetadata: { user: { ...user, permissionLevel: "create" } },
    });
  });

  test("fields and tables: made, renamed, retyped, destroyed; a new choice is no change", async () => {
    const id = await made({
      options: { ...EVERYTHING.options, includes: { includePreviousFieldDefinitions: true } },
    });
    const { control } = sandbox;
    const fieldId = control.addField(baseId, TEAMS, {
      name: "Flag",
      type: "singleSelect",
      options: { choices: [{ name: "red" }] },
    });
    control.patchField(baseId, TEAMS, fieldId, { options: { choices: [{ name: "red" }, { name: "blue" }] } });
    control.renameField(baseId, TEAMS, fieldId, "Colour");
    control.retypeField(baseId, TEAMS, fieldId, "singleLineText");
    control.deleteField(baseId, TEAMS, fieldId);
    const tableId = control.addTable(baseId, {
      name: "Ships",
      fields: [{ id: "fldShip0000000001", name: "Name", type: "singleLineText" }],
    });
    control.renameTable(baseId, tableId, "Boats");
    control.deleteTable(baseId, tableId);
    const told = (await payloads(id)).map(
      ({ changedTablesById, createdTablesById, destroyedTableIds }) =>
        changedTablesById?.[TEAMS] ?? changedTablesById ?? createdTablesById ?? destroyedTableIds,
    );
    expect(told).toEqual([
      { createdFieldsById: { [fieldId]: { name: "Flag", type: "singleSelect" } } },
      { changedFieldsById: { [fieldId]: { current: { name: "Colour" }, previous: { name: "Flag" } } } },
      {
        changedFieldsById: {
          [fieldId]: { current: { type: "singleLineText" }, previous: { type: "singleSelect" } },
        },
      },
      { destroyedFieldIds: [fieldId] },
      {
        [tableId]: {
          metadata: { name: "Ships", description: null },
          fieldsById: { fldShip0000000001: { name: "Name", type: "singleLineText" } },
        },
      },
      {
        [tableId]: {
          changedMetadata: {
            current: { name: "Boats", description: null },
            previous: { name: "Ships", description: null },
          },
        },
      },
      [tableId],
    ]);
  });

  test("filters let through what they name and nothing else", async () => {
    sandbox.control.settings({ webhooks: { computedCells: "not emitted" } });
    const { control } = sandbox;
    const ids = {
      fields: await made(filtered({ dataTypes: ["tableFields"] })),
      adds: await made(filtered({ changeTypes: ["add"] })),
      removes: await made(filtered({ changeTypes: ["remove"] })),
      automation: await made(filtered({ fromSources: ["automation"] })),
      teams: await made(filtered({ recordChangeScope: TEAMS })),
      ages: await made(filtered({ watchDataInFieldIds: ["fldAge00000000001"] })),
      names: await made(
        filtered(
          { recordChangeScope: PEOPLE },
          { includePreviousCellValues: true, includeCellValuesInFieldIds: ["fldAge00000000001"] },
        ),
      ),
    };
    control.createRecords(baseId, TEAMS, [{ id: "recNew00000000001", fields: { Name: "New" } }]);
    control.updateRecords(baseId, PEOPLE, [{ id: "recAnn00000000001", fields: { Name: "Anna" } }]);
    const byMachine = [{ id: "recAnn00000000001", fields: { Age: 42, Name: "Anne" } }];
    control.updateRecords(baseId, PEOPLE, byMachine, { source: "automation" });
    control.deleteRecords(baseId, TEAMS, ["recNew00000000001"]);
    control.addField(baseId, TEAMS, { name: "F", type: "email" });
    const numbers = async (id: string) =>
      (await payloads(id)).map((payload) => payload.baseTransactionNumber);
    expect(await numbers(ids.fields)).toEqual([5]);
    expect(await numbers(ids.adds)).toEqual([1]);
    expect(await numbers(ids.removes)).toEqual([4]);
    expect(await numbers(ids.automation)).toEqual([3]);
    expect(await numbers(ids.teams)).toEqual([1, 4]);
    expect(await numbers(ids.ages)).toEqual([3]);
    const ann = (payload: Loose) => payload.changedTablesById[PEOPLE].changedRecordsById.recAnn00000000001;
    expect(ann((await payloads(ids.ages))[0]).current.cellValuesByFieldId).toEqual({ fldAge00000000001: 42 });
    expect(ann((await payloads(ids.names))[0])).toEqual({
      current: { cellValuesByFieldId: { fldName0000000001: "Anna" } },
      previous: { cellValuesByFieldId: { fldName0000000001: "Ann" } },
      unchanged: { cellValuesByFieldId: { fldAge00000000001: 41 } },
    });
  });

  test("a hook on a view tells of records under the view", async () => {
    const { tables } = sandbox.control.dump(baseId);
    const viewId = (tables[1]!.views as { id: string }[])[0]!.id;
    const id = await made(filtered({ recordChangeScope: viewId }));
    sandbox.control.createRecords(baseId, TEAMS, [{ id: "recNew00000000001", fields: { Name: "New" } }]);
    sandbox.control.deleteRecords(baseId, TEAMS, ["recNew00000000001"]);
    const views = (await payloads(id)).map(
      (payload) => payload.changedTablesById[TEAMS].changedViewsById[viewId],
    );
    expect(views).toEqual([
      {
        createdRecordsById: {
          recNew00000000001: expect.objectContaining({ createdTime: expect.any(String) }),
        },
      },
      { destroyedRecordIds: ["recNew00000000001"] },
    ]);
  });

  test("a large change is split over payloads that share timestamp, transaction and action", async () => {
    sandbox.control.settings({ webhooks: { recordsPerPayload: 10, computedCells: "not emitted" } });
    const id = await made();
    const fields = { Name: "x" };
    const ids = sandbox.control.createRecords(
      baseId,
      TEAMS,
      Array.from({ length: 25 }, () => ({ fields })),
    );
    const parts = await payloads(id);
    const recordsOf = (payload: Loose) => Object.keys(payload.changedTablesById[TEAMS].createdRecordsById);
    expect(parts.map((payload) => recordsOf(payload).length)).toEqual([10, 10, 5]);
    expect(parts.flatMap(recordsOf)).toEqual(ids);
    const heads = parts.map(({ changedTablesById: _, ...head }) => JSON.stringify(head));
    expect(new Set(heads).size).toBe(1);
  });

  test("read by cursor, with any limits and edits in between, each payload comes once and in order", async () => {
    const step = fc.record({ edits: fc.nat(4), limit: fc.integer({ min: 1, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        const id = await made();
        const names: string[] = [];
        const seen: string[] = [];
        let cursor = 1;
        const read = async (limit: number) => {
          const page = await listed(id, `?cursor=${cursor}&limit=${limit}`);
          expect(page.cursor).toBe(cursor + page.payloads.length);
          expect(page.mightHaveMore).toBe(page.cursor <= names.length);
          cursor = page.cursor;
          for (const { changedTablesById } of page.payloads)
            seen.push(
              changedTablesById[PEOPLE].changedRecordsById.recBob00000000002.current.cellValuesByFieldId
                .fldName0000000001,
            );
          return page.mightHaveMore;
        };
        for (const { edits, limit } of steps) {
          for (let i = 0; i < edits; i++) {
            names.push(`Bob ${names.length}`);
            rename(names.at(-1)!);
          }
          await read(limit);
        }
        while (await read(50));
        expect(seen).toEqual(names);
        await hooks("DELETE", `/${id}`);
      }),
      { numRuns: 25 },
    );
  });

  test("a payload can be listed once its delay is over, and none overtakes another", async () => {
    sandbox.control.settings({ webhooks: { payloadDelayMs: 60_000 } });
    const id = await made();
    rename("slow");
    sandbox.control.settings({ webhooks: { payloadDelayMs: 0 } });
    rename("quick");
    expect(await listed(id)).toEqual({ payloads: [], cursor: 1, mightHaveMore: false });
    sandbox.control.advanceClock(60_000);
    expect((await listed(id)).cursor).toBe(3);
  });
});

describe("computed cells", () => {
  const move = () =>
    sandbox.control.updateRecords(baseId, TEAMS, [
      { id: "recDeck0000000001", fields: { Size: 9, Name: "Poop" } },
    ]);

  test("are told with their cause when they are emitted, over links too", async () => {
    const id = await made();
    move();
    const [payload] = await payloads(id);
    expect(payload.changedTablesById[PEOPLE]).toEqual({
      changedRecordsById: {
        recAnn00000000001: {
          current: {
            cellValuesByFieldId: {
              fldTeamSize000001: {
                linkedRecordIds: ["recDeck0000000001"],
                valuesByLinkedRecordId: { recDeck0000000001: [9] },
              },
              fldLabel000000001: "ANN/Poop",
            },
          },
        },
      },
    });
  });

  test("are not told when they are not emitted", async () => {
    sandbox.control.settings({ webhooks: { computedCells: "not emitted" } });
    const id = await made();
    move();
    const [payload] = await payloads(id);
    expect(Object.keys(payload.changedTablesById)).toEqual([TEAMS]);
  });

  test("are right after a time in which they were not emitted", async () => {
    const id = await made();
    const size = (value: number) =>
      sandbox.control.updateRecords(baseId, TEAMS, [{ id: "recDeck0000000001", fields: { Size: value } }]);
    size(9);
    sandbox.control.settings({ webhooks: { computedCells: "not emitted" } });
    size(4);
    sandbox.control.settings({ webhooks: { computedCells: "emitted" } });
    size(9);
    const told = (await payloads(id)).map(({ changedTablesById }) => Object.keys(changedTablesById).sort());
    expect(told).toEqual([[PEOPLE, TEAMS], [TEAMS], [PEOPLE, TEAMS]]);
  });

  test("a new formula field names every record", async () => {
    const id = await made();
    const options = { formula: "{Age}*2", result: { type: "number" } };
    const fieldId = sandbox.control.addField(baseId, PEOPLE, { name: "Twice", type: "formula", options });
    const [payload] = await payloads(id);
    const { createdFieldsById, changedRecordsById } = payload.changedTablesById[PEOPLE];
    expect(createdFieldsById).toEqual({ [fieldId]: { name: "Twice", type: "formula" } });
    expect(Object.keys(changedRecordsById)).toHaveLength(3);
    expect(changedRecordsById.recAnn00000000001.current.cellValuesByFieldId).toEqual({ [fieldId]: 82 });
  });

  const PEOPLE_IDS = ["recAnn00000000001", "recBob00000000002", "recCat00000000003"];
  const TEAM_IDS = ["recDeck0000000001", "recGalley00000002"];
  const edit = fc.oneof(
    fc.record({
      table: fc.constant(PEOPLE),
      id: fc.constantFrom(...PEOPLE_IDS),
      fields: fc.record(
        {
          Name: fc.constantFrom("A", "b", null),
          Age: fc.constantFrom(1, 2, null),
          Team: fc.subarray(TEAM_IDS),
        },
        { requiredKeys: [] },
      ),
    }),
    fc.record({
      table: fc.constant(TEAMS),
      id: fc.constantFrom(...TEAM_IDS),
      fields: fc.record(
        {
          Name: fc.constantFrom("T", "u", null),
          Size: fc.constantFrom(1, 2),
          Members: fc.subarray(PEOPLE_IDS),
        },
        { requiredKeys: [] },
      ),
    }),
  );

  test("K1: whatever people edit, every cell that is another afterwards is named, with its value", async () => {
    /** `record field` → value, of every cell. */
    const cells = () => {
      const all = new Map<string, string>();
      for (const table of sandbox.control.dump(baseId).tables)
        for (const record of table.records)
          for (const field of table.fields as { id: string }[])
            all.set(`${record.id} ${field.id}`, JSON.stringify(record.fields[field.id] ?? null));
      return all;
    };
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 5 }), async (edits) => {
        const id = await made();
        let before = cells();
        for (const { table, id: recordId, fields } of edits) {
          const { cursor } = await listed(id);
          sandbox.control.updateRecords(baseId, table, [{ id: recordId, fields }]);
          const after = cells();
          const named = new Map<string, unknown>();
          for (const { changedTablesById } of (await listed(id, `?cursor=${cursor}`)).payloads)
            for (const changes of Object.values<Loose>(changedTablesById))
              for (const [record, { current }] of Object.entries<Loose>(changes.changedRecordsById))
                for (const [field, value] of Object.entries(current.cellValuesByFieldId))
                  named.set(`${record} ${field}`, value);
          for (const [key, value] of after) {
            if (value === before.get(key)) continue;
            expect([...named.keys()]).toContain(key);
            if (typeof named.get(key) !== "object") expect(JSON.stringify(named.get(key))).toBe(value);
          }
          before = after;
        }
        await hooks("DELETE", `/${id}`);
      }),
      { numRuns: 60 },
    );
  });
});

describe("lives", () => {
  const enabled = async () => ((await hooks("GET")).body.webhooks as Loose)[0]?.isHookEnabled;

  test("a hook is disabled after seven days, readable for seven more, then gone", async () => {
    const id = await made();
    sandbox.control.advanceClock(6 * DAY_MS);
    rename("kept");
    sandbox.control.advanceClock(DAY_MS);
    expect(await enabled()).toBe(false);
    rename("too late");
    expect((await listed(id)).cursor).toBe(2);
    expect((await hooks("POST", `/${id}/refresh`)).status).toBe(422);
    sandbox.control.advanceClock(7 * DAY_MS - 1000);
    expect(await enabled()).toBe(false);
    sandbox.control.advanceClock(1000);
    expect(await enabled()).toBeUndefined();
    expect((await hooks("GET", `/${id}/payloads`)).status).toBe(404);
  });

  test.for<[string, (id: string) => Promise<Reply>]>([
    ["a refresh", (id) => hooks("POST", `/${id}/refresh`)],
    ["listing payloads", (id) => hooks("GET", `/${id}/payloads`)],
  ])("%s gives seven days more", async ([, extend]) => {
    const id = await made();
    sandbox.control.advanceClock(6 * DAY_MS);
    expect((await extend(id)).status).toBe(200);
    sandbox.control.advanceClock(6 * DAY_MS);
    expect(await enabled()).toBe(true);
  });

  test("payloads are kept for seven days; an older cursor skips them, or is refused if set so", async () => {
    const id = await made();
    for (const name of ["one", "two"]) rename(name);
    sandbox.control.advanceClock(4 * DAY_MS);
    await listed(id);
    rename("three");
    sandbox.control.advanceClock(4 * DAY_MS);
    const page = await listed(id, "?cursor=1");
    expect([page.payloads.length, page.cursor, page.mightHaveMore]).toEqual([1, 4, false]);
    sandbox.control.settings({ webhooks: { oldCursor: "refuse" } });
    expect((await hooks("GET", `/${id}/payloads?cursor=1`)).status).toBe(422);
    expect((await hooks("GET", `/${id}/payloads?cursor=3`)).status).toBe(200);
  });

  test("an error payload ends the hook, but for an internal error", async () => {
    const id = await made();
    sandbox.control.webhooks.fail(baseId, id, "INTERNAL_ERROR");
    expect(await enabled()).toBe(true);
    sandbox.control.webhooks.fail(baseId, id, "INVALID_HOOK");
    rename("unheard");
    expect((await payloads(id)).map(({ error, code }) => [error, code])).toEqual([
      [true, "INTERNAL_ERROR"],
      [true, "INVALID_HOOK"],
    ]);
    expect(await enabled()).toBe(false);
    expect(() => sandbox.control.webhooks.fail(baseId, id, "NO_SUCH")).toThrow("Use one of");
  });

  test("a silent hook looks alive and tells nothing", async () => {
    const id = await made();
    sandbox.control.webhooks.silence(baseId, id);
    rename("unheard");
    expect(await listed(id)).toEqual({ payloads: [], cursor: 1, mightHaveMore: false });
    expect(await enabled()).toBe(true);
    sandbox.control.webhooks.silence(baseId, id, false);
    rename("heard");
    expect(await payloads(id)).toHaveLength(1);
  });

  test("a hook whose watched field is deleted falls silent; one whose table is deleted says so", async () => {
    const onField = await made(filtered({ watchDataInFieldIds: ["fldAge00000000001"] }));
    const onTable = await made(filtered({ recordChangeScope: TEAMS }));
    sandbox.control.deleteField(baseId, PEOPLE, "Age");
    sandbox.control.deleteTable(baseId, TEAMS);
    expect(sandbox.control.webhooks.list(baseId)).toMatchObject([
      { id: onField, isHookEnabled: true, isSilent: true },
      { id: onTable, isHookEnabled: false, isSilent: false },
    ]);
    expect((await payloads(onTable)).at(-1)).toMatchObject({ error: true, code: "INVALID_FILTERS" });
  });

  test("a hook goes with its base, and what somebody else deletes is gone", async () => {
    const id = await made();
    sandbox.control.webhooks.delete(baseId, id);
    expect((await hooks("GET", `/${id}/payloads`)).status).toBe(404);
    await made();
    sandbox.control.deleteBase(baseId);
    expect((await hooks("GET")).status).toBe(403);
  });

  test("over HTTP the control does the same", async () => {
    const [a, b] = [await made(), await made()];
    const control = (method: string, path: string, body?: unknown) =>
      fetch(`${sandbox.url}/_sandbox/${path}`, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    await control("POST", `bases/${baseId}/webhooks/${a}/silence`, {});
    await control("POST", `bases/${baseId}/webhooks/${a}/fail`, { code: "INVALID_FILTERS" });
    await control("DELETE", `bases/${baseId}/webhooks/${b}`);
    expect(await (await control("GET", `bases/${baseId}/webhooks`)).json()).toMatchObject([
      { id: a, isSilent: true, isHookEnabled: false, cursorForNextPayload: 2 },
    ]);
    expect(await (await control("GET", `pings?base=${baseId}`)).json()).toEqual([]);
    expect((await control("POST", "settings", { webhooks: { pingLoss: "often" } })).status).toBe(400);
  });
});

describe("pings", () => {
  /** A listener that answers with `status` and keeps what it got. */
  function listener(status: () => number = () => 204) {
    const got: { body: string; mac: string | null }[] = [];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        got.push({ body: await request.text(), mac: request.headers.get("x-airtable-content-mac") });
        const code = status();
        return new Response(null, {
          status: code,
          ...(code === 302 && { headers: { location: "/elsewhere" } }),
        });
      },
    });
    return {
      got,
      url: `http://127.0.0.1:${server.port}/ping`,
      [Symbol.asyncDispose]: () => server.stop(true),
    };
  }

  const result = async (): Promise<Loose> => ((await hooks("GET")).body.webhooks as Loose)[0];
  const arrived = (what: { got: unknown[] }, count: number) =>
    until(() => what.got.length >= count, { what: `ping ${count} arrives` });
  const tried = (count: number) =>
    until(() => sandbox.control.webhooks.pings(baseId).length >= count, { what: `ping ${count} was tried` });

  test("a ping names base and hook and is signed over its bytes with the decoded secret", async () => {
    await using target = listener();
    const { body } = await hooks("POST", "", { notificationUrl: target.url, specification: EVERYTHING });
    rename("ping");
    await arrived(target, 1);
    const [ping] = target.got;
    expect(JSON.parse(ping!.body)).toEqual({
      base: { id: baseId },
      webhook: { id: body.id },
      timestamp: expect.stringMatching(/Z$/),
    });
    const secret = Buffer.from(String(body.macSecretBase64), "base64");
    expect(ping!.mac).toBe(`hmac-sha256=${createHmac("sha256", secret).update(ping!.body).digest("hex")}`);
    await tried(1);
    expect(await result()).toMatchObject({
      lastNotificationResult: { success: true, retryNumber: 0, durationMs: expect.any(Number) },
      lastSuccessfulNotificationTime: expect.stringMatching(/Z$/),
    });
  });

  test("a failed ping is retried, later each time, until the hook's notifications are switched off", async () => {
    sandbox.control.settings({ webhooks: { pingMaxRetries: 2, pingRetryMs: 60_000 } });
    await using target = listener(() => 503);
    await made(EVERYTHING, target.url);
    rename("ping");
    await tried(1);
    expect((await result()).lastNotificationResult).toMatchObject({
      success: false,
      retryNumber: 0,
      willBeRetried: true,
      error: { message: "The HTTP request returned a 503 status code instead of 200 or 204" },
    });
    sandbox.control.advanceClock(60_000);
    await tried(2);
    await using other = listener();
    const otherId = await made(EVERYTHING, other.url);
    sandbox.control.advanceClock(119_000);
    rename("covered by the retry");
    // A retry that came too early would have been sent before this one.
    await tried(3);
    expect(target.got).toHaveLength(2);
    await hooks("DELETE", `/${otherId}`);
    sandbox.control.advanceClock(1_000);
    await tried(4);
    expect(await result()).toMatchObject({
      areNotificationsEnabled: false,
      isHookEnabled: true,
      cursorForNextPayload: 3,
      lastNotificationResult: { retryNumber: 2, willBeRetried: false },
    });
    const { id } = await result();
    await hooks("POST", `/${id}/enableNotifications`, { enable: true });
    rename("again");
    await arrived(target, 4);
  });

  test("changes that come together or while a ping is under way are covered by one more", async () => {
    await using target = listener();
    const id = await made(EVERYTHING, target.url);
    for (let i = 0; i < 20; i++) rename(`name ${i}`);
    await arrived(target, 1);
    await until(async () => (await result()).lastSuccessfulNotificationTime, { what: "a ping succeeds" });
    expect(target.got.length).toBeLessThanOrEqual(2);
    expect((await listed(id)).cursor).toBe(21);
  });

  test("pings are lost, doubled and delayed as set, and a hook knows nothing of a lost one", async () => {
    await using target = listener();
    await made(EVERYTHING, target.url);
    sandbox.control.settings({ webhooks: { pingLoss: 1 } });
    rename("lost");
    await tried(1);
    expect((await result()).lastNotificationResult).toBeNull();
    sandbox.control.settings({ webhooks: { pingLoss: 0, pingDuplication: 1 } });
    rename("doubled");
    await arrived(target, 2);
    await tried(3);
    sandbox.control.settings({ webhooks: { pingDuplication: 0, pingDelayMs: 3_600_000 } });
    rename("delayed");
    expect(sandbox.control.webhooks.pings(baseId).map(({ outcome }) => outcome)).toEqual([
      "lost",
      "delivered",
      "delivered",
    ]);
    sandbox.control.advanceClock(3_600_000);
    await arrived(target, 3);
  });

  test("a payload that becomes available after a ping gets its own", async () => {
    await using target = listener();
    await made(EVERYTHING, target.url);
    rename("now");
    sandbox.control.settings({ webhooks: { payloadDelayMs: 60_000 } });
    rename("in a minute");
    await tried(1);
    sandbox.control.advanceClock(60_000);
    await arrived(target, 2);
  });

  test.for(["https://hooks.example.org/ping", "http://10.0.0.1/ping", "http://127.0.0.1.example.org/ping"])(
    "G1: %s is never called: the ping has failed",
    async (url) => {
      await made(EVERYTHING, url);
      rename("ping");
      await tried(1);
      expect((await result()).lastNotificationResult).toMatchObject({
        success: false,
        error: { message: "The sandbox calls loopback addresses only" },
      });
    },
  );

  test("G1: a redirect is not followed", async () => {
    await using target = listener(() => 302);
    await made(EVERYTHING, target.url);
    rename("ping");
    await tried(1);
    expect((await result()).lastNotificationResult.success).toBe(false);
    expect(target.got).toHaveLength(1);
  });
});
