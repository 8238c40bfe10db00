/** The adapter's change feed with the sandbox: its requests, and a copy that is maintained from it alone. */
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxHandle } from "../../../apps/sandbox/server";
import type { ChangeFeed, Hop, SourceConnection, SourceSchema } from "../../../core/source";
import { createAirtable } from "../../../core/source/airtable";
import { crew, PEOPLE, quietSandbox, TEAMS } from "../../support/sandbox-support";

const never = new AbortController().signal;
const DAY_MS = 24 * 3600 * 1000;

let sandbox: SandboxHandle;
let baseId: string;
let connection: SourceConnection;
let feed: ChangeFeed;

beforeAll(async () => {
  sandbox = await quietSandbox();
});
afterAll(() => sandbox?.stop());
beforeEach(() => {
  sandbox.control.reset();
  sandbox.control.settings({ rateLimitOff: true });
  baseId = crew(sandbox);
  connection = connect(sandbox.key);
  feed = connection.changeFeed!;
});

function connect(key: string): SourceConnection {
  return createAirtable({ upstreams: { "api.airtable.com": sandbox.url }, timeoutMs: 30_000 }).connect(key);
}

const webhook = () => feed.createWebhook(baseId, {}, never);
const rename = (Name: string) =>
  sandbox.control.updateRecords(baseId, PEOPLE, [{ id: "recBob00000000002", fields: { Name } }]);

describe("change feed requests", () => {
  test("a webhook is created, listed, refreshed, enabled and disabled, and deleted; deleting it again is no error", async () => {
    const url = "http://127.0.0.1:9/ping";
    const made = await feed.createWebhook(baseId, { notificationUrl: url }, never);
    expect(Buffer.from(made.secretBase64, "base64")).toHaveLength(32);
    sandbox.control.advanceClock(DAY_MS);
    const expiresMs = await feed.refreshWebhook(baseId, made.id, never);
    expect(expiresMs).toBeGreaterThanOrEqual(made.expiresMs! + DAY_MS);
    await feed.enableNotifications(baseId, made.id, false, never);
    expect(await feed.listWebhooks(baseId, never)).toEqual([
      {
        id: made.id,
        notificationUrl: url,
        isEnabled: true,
        areNotificationsEnabled: false,
        nextCursor: 1,
        expiresMs,
      },
    ]);
    await feed.deleteWebhook(baseId, made.id, never);
    await feed.deleteWebhook(baseId, made.id, never);
    expect(await feed.listWebhooks(baseId, never)).toEqual([]);
    await expect(feed.listPayloads(baseId, made.id, 1, never)).rejects.toMatchObject({
      code: "source_not_found",
    });
  });

  test("a missing scope is reported as such, and a cursor below 1 is never sent", async () => {
    const poor = connect(sandbox.control.createKey({ scopes: ["data.records:read"] })).changeFeed!;
    await expect(poor.createWebhook(baseId, {}, never)).rejects.toMatchObject({ code: "source_forbidden" });
    sandbox.control.clearLog();
    await expect(feed.listPayloads(baseId, "ach1", 0, never)).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect(sandbox.control.log(baseId)).toEqual([]);
  });

  test("beyond the monthly cap, requests fail with that error", async () => {
    const { id } = await webhook();
    sandbox.control.cap(baseId, { cap: 0 });
    for (const billingLimitForm of ["object", "plural"] as const) {
      sandbox.control.settings({ billingLimitForm });
      await expect(feed.listPayloads(baseId, id, 1, never)).rejects.toMatchObject({
        code: "source_billing_limit",
      });
    }
  });

  test("payloads are listed fifty at a time, from any cursor", async () => {
    const { id } = await webhook();
    for (let i = 0; i < 60; i++) rename(`Bob ${i}`);
    const first = await feed.listPayloads(baseId, id, 1, never);
    expect(first).toMatchObject({ cursor: 51, mightHaveMore: true, payloads: 50, hasGap: false });
    const rest = await feed.listPayloads(baseId, id, first.cursor, never);
    expect(rest).toMatchObject({ cursor: 61, mightHaveMore: false, payloads: 10, hasGap: false });
    expect([...rest.changes.tables.get(PEOPLE)!.changed.keys()]).toEqual(["recBob00000000002"]);
  });

  test("an error payload and an expired cursor are reported", async () => {
    const { id } = await webhook();
    rename("too old");
    sandbox.control.advanceClock(5 * DAY_MS);
    await feed.refreshWebhook(baseId, id, never);
    sandbox.control.advanceClock(5 * DAY_MS);
    expect(await feed.listPayloads(baseId, id, 1, never)).toMatchObject({
      cursor: 2,
      hasGap: true,
      payloads: 0,
    });
    sandbox.control.webhooks.fail(baseId, id, "INVALID_FILTERS");
    expect(await feed.listPayloads(baseId, id, 2, never)).toMatchObject({
      error: "INVALID_FILTERS",
      hasGap: false,
    });
    expect((await feed.listWebhooks(baseId, never))[0]).toMatchObject({ isEnabled: false });
  });

  test("changed fields and tables are reported", async () => {
    const { id } = await webhook();
    const { control } = sandbox;
    const gone = control.addTable(baseId, { name: "Gone", fields: [{ name: "N", type: "email" }] });
    const made = control.addTable(baseId, { name: "Made", fields: [{ name: "N", type: "email" }] });
    control.renameTable(baseId, TEAMS, "Crews");
    control.renameField(baseId, PEOPLE, "Age", "Years");
    control.deleteTable(baseId, gone);
    const { changes } = await feed.listPayloads(baseId, id, 1, never);
    expect(changes).toMatchObject({
      tablesCreated: [made],
      tablesDestroyed: [gone],
      tablesChanged: [TEAMS],
    });
    expect(changes.tables.get(PEOPLE)).toMatchObject({ fieldsChanged: true, created: [], destroyed: [] });
    expect(changes.tables.get(TEAMS)).toMatchObject({ fieldsChanged: false });
  });
});

describe("a copy that reads again what the feed names, and what depends on it", () => {
  type Copy = Map<string, Map<string, Record<string, unknown>>>;

  async function read(schema: SourceSchema, tableId: string, ids: string[], copy: Copy): Promise<void> {
    const table = schema.tables.find((one) => one.id === tableId)!;
    const rows = copy.get(tableId)!;
    for (const id of ids) rows.delete(id);
    for (let i = 0; i < ids.length; i += 100) {
      const page = await connection.listByIds(baseId, table, ids.slice(i, i + 100), {}, never);
      for (let at = 0; at < page.size; at++) rows.set(page.id(at), page.record(at).fields);
    }
  }

  /** Reads the feed from `cursor` to its end into the copy. @returns the cursor to continue from */
  async function follow(
    webhookId: string,
    cursor: number,
    schema: SourceSchema,
    copy: Copy,
  ): Promise<number> {
    const batch = await feed.listPayloads(baseId, webhookId, cursor, never);
    const linking = ({ tableId, viaLinkFieldId }: Hop, ids: string[]) =>
      [...copy.get(tableId)!].flatMap(([id, fields]) => {
        const cell = fields[viaLinkFieldId];
        return Array.isArray(cell) && cell.some((to) => ids.includes(to)) ? [id] : [];
      });
    const changed = [...batch.changes.tables].flatMap(([tableId, table]) => [
      { tableId, fieldId: null, recordIds: [...table.created, ...table.destroyed] },
      ...[...table.changed].flatMap(([id, fields]) =>
        fields.map((fieldId) => ({ tableId, fieldId, recordIds: [id] })),
      ),
    ]);
    const { records } = feed.dependents(schema);
    // Before and after the changed records were read: links may have been added and removed.
    const before = await records(changed, linking);
    for (const [tableId, { created, changed: moved, destroyed }] of batch.changes.tables)
      await read(schema, tableId, [...created, ...moved.keys(), ...destroyed], copy);
    for (const found of [before, await records(changed, linking)])
      for (const [tableId, ids] of found) await read(schema, tableId, [...ids], copy);
    return batch.mightHaveMore ? follow(webhookId, batch.cursor, schema, copy) : batch.cursor;
  }

  const truth = () => {
    const tables = sandbox.control
      .dump(baseId)
      .tables.map(
        ({ id, records }) => [id, new Map(records.map((record) => [record.id, record.fields]))] as const,
      );
    return new Map(tables);
  };

  const ids = {
    [PEOPLE]: ["recAnn00000000001", "recBob00000000002", "recCat00000000003"],
    [TEAMS]: ["recDeck0000000001", "recGalley00000002"],
  };
  const people = fc.record(
    { Name: fc.constantFrom("A", "B", null), Age: fc.nat(3), Team: fc.subarray(ids[TEAMS]!) },
    { requiredKeys: [] },
  );
  const teams = fc.record(
    { Name: fc.constantFrom("T", "U"), Size: fc.nat(3), Members: fc.subarray(ids[PEOPLE]!) },
    { requiredKeys: [] },
  );
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ table: fc.constant(PEOPLE), row: fc.nat(2), fields: people }) },
    { weight: 4, arbitrary: fc.record({ table: fc.constant(TEAMS), row: fc.nat(1), fields: teams }) },
    { weight: 1, arbitrary: fc.record({ table: fc.constantFrom(PEOPLE, TEAMS), fresh: fc.boolean() }) },
    { weight: 2, arbitrary: fc.constant("read" as const) },
  );

  test.for(["emitted", "not emitted"] as const)(
    "equals the source after any edits, with computed cells %s",
    async (computedCells) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
          sandbox.control.reset();
          sandbox.control.settings({ rateLimitOff: true, webhooks: { computedCells, recordsPerPayload: 2 } });
          baseId = crew(sandbox);
          const { id } = await webhook();
          const schema = await connection.getSchema(baseId, never);
          const copy = truth() as Copy;
          let cursor = 1;
          for (const one of [...steps, "read" as const]) {
            if (one === "read") {
              cursor = await follow(id, cursor, schema, copy);
              expect(copy).toEqual(truth());
            } else if ("fresh" in one) {
              const { table, fresh } = one;
              const rows = sandbox.control.dump(baseId).tables.find((two) => two.id === table)!.records;
              if (fresh) sandbox.control.createRecords(baseId, table, [{ fields: { Name: "New" } }]);
              else if (rows.length > 3) sandbox.control.deleteRecords(baseId, table, [rows.at(-1)!.id]);
            } else {
              const { table, row, fields } = one;
              sandbox.control.updateRecords(baseId, table, [{ id: ids[table]![row]!, fields }]);
            }
          }
        }),
        { numRuns: 40 },
      );
    },
  );
});
