/** What the sandbox's webhooks report: payloads and their format, filters, cursors and delays. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { call, PEOPLE, TEAMS } from "../../support/sandbox-support";
import { EVERYTHING, filtered, type Loose, webhookScene } from "../../support/webhook-support";

const scene = webhookScene();
const { hooks, listed, made, payloads, rename } = scene;

describe("payloads", () => {
  test("users' edits are reported with their user, cell by cell, in the webhook's own format", async () => {
    scene.control.settings({ webhooks: { computedCells: "not emitted" } });
    const id = await made();
    const [rec] = scene.control.createRecords(scene.baseId, PEOPLE, [
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
    scene.control.updateRecords(scene.baseId, PEOPLE, [{ id: rec!, fields: { Role: null, Age: 7 } }]);
    scene.control.deleteRecords(scene.baseId, PEOPLE, [rec!]);
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

  test("writes through the API are reported as such, with the token's user", async () => {
    const id = await made();
    const user = { id: "usrApi00000000001", email: "api@example.org" };
    const key = scene.control.createKey({ user });
    await call(
      scene.sandbox,
      "PATCH",
      `/${scene.baseId}/${PEOPLE}/recBob00000000002`,
      { fields: { Age: 5 } },
      key,
    );
    const [payload] = await payloads(id);
    expect(payload.actionMetadata).toEqual({
      source: "publicApi",
      sourceMetadata: { user: { ...user, permissionLevel: "create" } },
    });
  });

  test("fields and tables: created, renamed, retyped, deleted; a new choice is no change", async () => {
    const id = await made({
      options: { ...EVERYTHING.options, includes: { includePreviousFieldDefinitions: true } },
    });
    const { control } = scene;
    const fieldId = control.addField(scene.baseId, TEAMS, {
      name: "Flag",
      type: "singleSelect",
      options: { choices: [{ name: "red" }] },
    });
    control.patchField(scene.baseId, TEAMS, fieldId, {
      options: { choices: [{ name: "red" }, { name: "blue" }] },
    });
    control.renameField(scene.baseId, TEAMS, fieldId, "Colour");
    control.retypeField(scene.baseId, TEAMS, fieldId, "singleLineText");
    control.deleteField(scene.baseId, TEAMS, fieldId);
    const tableId = control.addTable(scene.baseId, {
      name: "Ships",
      fields: [{ id: "fldShip0000000001", name: "Name", type: "singleLineText" }],
    });
    control.renameTable(scene.baseId, tableId, "Boats");
    control.deleteTable(scene.baseId, tableId);
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

  test("filters pass what they name and nothing else", async () => {
    scene.control.settings({ webhooks: { computedCells: "not emitted" } });
    const { control } = scene;
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
    control.createRecords(scene.baseId, TEAMS, [{ id: "recNew00000000001", fields: { Name: "New" } }]);
    control.updateRecords(scene.baseId, PEOPLE, [{ id: "recAnn00000000001", fields: { Name: "Anna" } }]);
    const byMachine = [{ id: "recAnn00000000001", fields: { Age: 42, Name: "Anne" } }];
    control.updateRecords(scene.baseId, PEOPLE, byMachine, { source: "automation" });
    control.deleteRecords(scene.baseId, TEAMS, ["recNew00000000001"]);
    control.addField(scene.baseId, TEAMS, { name: "F", type: "email" });
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

  test("a webhook on a view reports records under the view", async () => {
    const { tables } = scene.control.dump(scene.baseId);
    const viewId = (tables[1]!.views as { id: string }[])[0]!.id;
    const id = await made(filtered({ recordChangeScope: viewId }));
    scene.control.createRecords(scene.baseId, TEAMS, [{ id: "recNew00000000001", fields: { Name: "New" } }]);
    scene.control.deleteRecords(scene.baseId, TEAMS, ["recNew00000000001"]);
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
    scene.control.settings({ webhooks: { recordsPerPayload: 10, computedCells: "not emitted" } });
    const id = await made();
    const fields = { Name: "x" };
    const ids = scene.control.createRecords(
      scene.baseId,
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

  test("when read by cursor, with any limits and with edits in between, each payload arrives once and in order", async () => {
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

  test("a payload can be listed once its delay has passed, and none overtakes another", async () => {
    scene.control.settings({ webhooks: { payloadDelayMs: 60_000 } });
    const id = await made();
    rename("slow");
    scene.control.settings({ webhooks: { payloadDelayMs: 0 } });
    rename("quick");
    expect(await listed(id)).toEqual({ payloads: [], cursor: 1, mightHaveMore: false });
    scene.control.advanceClock(60_000);
    expect((await listed(id)).cursor).toBe(3);
  });
});
