/** Computed cells in the payloads of the sandbox's webhooks. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PEOPLE, TEAMS } from "../../support/sandbox-support";
import { type Loose, webhookScene } from "../../support/webhook-support";

const scene = webhookScene();
const { hooks, listed, made, payloads } = scene;

describe("computed cells", () => {
  const move = () =>
    scene.control.updateRecords(scene.baseId, TEAMS, [
      { id: "recDeck0000000001", fields: { Size: 9, Name: "Poop" } },
    ]);

  test("are reported with their cause when they are emitted, also over links", async () => {
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

  test("are not reported when they are not emitted", async () => {
    scene.control.settings({ webhooks: { computedCells: "not emitted" } });
    const id = await made();
    move();
    const [payload] = await payloads(id);
    expect(Object.keys(payload.changedTablesById)).toEqual([TEAMS]);
  });

  test("are correct after a period in which they were not emitted", async () => {
    const id = await made();
    const size = (value: number) =>
      scene.control.updateRecords(scene.baseId, TEAMS, [
        { id: "recDeck0000000001", fields: { Size: value } },
      ]);
    size(9);
    scene.control.settings({ webhooks: { computedCells: "not emitted" } });
    size(4);
    scene.control.settings({ webhooks: { computedCells: "emitted" } });
    size(9);
    const told = (await payloads(id)).map(({ changedTablesById }) => Object.keys(changedTablesById).sort());
    expect(told).toEqual([[PEOPLE, TEAMS], [TEAMS], [PEOPLE, TEAMS]]);
  });

  test("a new formula field names every record", async () => {
    const id = await made();
    const options = { formula: "{Age}*2", result: { type: "number" } };
    const fieldId = scene.control.addField(scene.baseId, PEOPLE, { name: "Twice", type: "formula", options });
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

  test("K1: after any edits, every cell that has changed is named, with its value", async () => {
    /** `record field` → value, of every cell. */
    const cells = () => {
      const all = new Map<string, string>();
      for (const table of scene.control.dump(scene.baseId).tables)
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
          scene.control.updateRecords(scene.baseId, table, [{ id: recordId, fields }]);
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
