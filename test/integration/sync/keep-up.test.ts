/** While a sync builds one table, the others are kept up to date. */
import { expect, type TestContext, test, vi } from "vitest";
import { type SyncInput, syncBase } from "../../../core/sync/engine";
import { testEngine } from "../../support/engine";
import { modifiedSince } from "../../support/fake-source";
import { until } from "../../support/poll";
import { sourceRecord, sourceTable } from "../../support/source-records";

// The tests mostly wait, each with its own engine.
vi.setConfig({ testTimeout: 60_000 });

type NotifiedChanges = NonNullable<Awaited<SyncInput["opening"]>>;

/**
 * Starts a first sync with Turbo of this many tables, which are soon complete, and of one that takes until `end`.
 *
 * @param notified whether the source notifies of changes; it does not unless given
 */
async function firstSync({ onTestFinished }: TestContext, tables: number, notified?: NotifiedChanges) {
  const engine = await testEngine({ onFinished: onTestFinished });
  const ids = Array.from({ length: tables }, (_, at) => `tblS${at}`);
  for (const id of ids)
    engine.source.add(sourceTable(id, id, { Name: "text" }), [sourceRecord(`rec${id}`, { fld0: "first" })]);
  const large = Array.from({ length: 300 }, (_, at) => sourceRecord(`recL${at}`, { fld0: "large" }));
  engine.source.add(sourceTable("tblL", "Large", { Name: "text" }), large);
  engine.source.pageSize = 1;
  let isOver = false;
  engine.source.before = async (call) => {
    if (call.startsWith("list tblL") && !isOver) await Bun.sleep(400);
  };
  engine.cache.sourceClock.record(Date.now());
  const input = engine.input();
  const reader = { ...input.reader, quotaKey: "airtable:app1", share: () => 5 };
  const synced = syncBase({
    ...input,
    reader,
    modifiedSince,
    opening: notified && Promise.resolve(notified),
  });
  const looks = (id: string) => engine.source.calls.filter((call) => call.startsWith(`look ${id} `)).length;
  return {
    engine,
    ids,
    looks: () => Math.min(...ids.map(looks)),
    looksOf: looks,
    async end() {
      isOver = true;
      expect(await synced).not.toHaveProperty("error");
    },
  };
}

test.concurrent("each of five tables that are complete is looked at as often as one would be", async (context) => {
  const [one, five] = await Promise.all([firstSync(context, 1), firstSync(context, 5)]);
  await until(() => one.looks() >= 5, { what: "one table is looked at", timeoutMs: 40_000 });
  expect(five.looks()).toBeGreaterThanOrEqual(4);
  await Promise.all([one.end(), five.end()]);
});

test.concurrent("a table that is not answered for delays no other, and an edit arrives", async (context) => {
  const { engine, ids, looksOf, end } = await firstSync(context, 3);
  const hung = Promise.withResolvers<void>();
  const before = engine.source.before;
  engine.source.before = (call) => (call.startsWith(`look ${ids[0]} `) ? hung.promise : before(call));
  await until(() => looksOf(ids[0]!) > 0, { what: "the first one is asked for", timeoutMs: 20_000 });
  const looked = looksOf(ids[1]!);
  const edited = engine.source.tables[1]!;
  edited.records.set(`rec${ids[1]}`, sourceRecord(`rec${ids[1]}`, { fld0: "edited" }));
  edited.modifiedMs.set(`rec${ids[1]}`, Date.now());
  const rows = async () => (await engine.rows("tbl_s1")) as { name: string }[];
  await until(async () => (await rows())[0]!.name === "edited", {
    what: "the edit is in SQL",
    timeoutMs: 20_000,
  });
  await until(() => looksOf(ids[1]!) >= looked + 3, { what: "it is looked at again", timeoutMs: 20_000 });
  hung.resolve();
  await end();
});

test.concurrent("where the source notifies of changes, a complete table is asked for after a notification", async (context) => {
  const notified = { notifications: "proven", notifiedAt: Number.NEGATIVE_INFINITY } as const;
  const changes: { -readonly [Key in keyof NotifiedChanges]: NotifiedChanges[Key] } = { ...notified };
  const [polled, hinted] = await Promise.all([firstSync(context, 1), firstSync(context, 1, changes)]);
  await until(() => polled.looks() >= 2, { what: "a table is polled", timeoutMs: 40_000 });
  expect(hinted.looks()).toBe(0);
  changes.notifiedAt = performance.now();
  await until(() => hinted.looks() > 0, { what: "the table is asked for", timeoutMs: 20_000 });
  const looked = polled.looks();
  await until(() => polled.looks() >= looked + 2, { what: "a table is polled further", timeoutMs: 40_000 });
  expect(hinted.looks()).toBe(1);
  await Promise.all([polled.end(), hinted.end()]);
});
