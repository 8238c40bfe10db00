/** `LISTEN basetide`: customers are notified of changes when they can read them. */
import type postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { applyRowImages, applySettings, loadCatalog, takeReadVersion } from "../../../core/replica";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

interface Told {
  table: string;
  ids?: string[];
  rebuilt?: true;
}

/** An engine with people, and a listening customer. */
async function listened(notify: boolean) {
  const engine = await testEngine();
  const people = engine.source.add(sourceTable("tblP", "People", { Name: "text" }), []);
  const { replica, readerUrl } = engine.replica;
  await applySettings(replica, engine.input().epoch, { history: false, notify });
  const reader = readerOf(readerUrl);
  onTestFinished(() => reader[Symbol.asyncDispose]());
  const told: Told[] = [];
  const payloads: string[] = [];
  await reader.listen("basetide", (payload) => {
    payloads.push(payload);
    told.push(JSON.parse(payload));
  });
  return { engine, people, replica, reader: reader as postgres.Sql, told, payloads };
}

test("a listening customer is notified of each batch, of proxied writes and of rebuilds, once they can be read", async () => {
  const { engine, people, replica, reader, told } = await listened(true);
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann" }));
  await engine.sync();
  await until(() => told.length === 1, { what: "the first sync is notified" });
  expect(told).toEqual([{ table: "people", rebuilt: true }]);
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Bea" }));
  people.records.set("rec2", sourceRecord("rec2", { fld0: "Cay" }));
  await engine.sync();
  await until(() => told.length === 2, { what: "the sweep is notified" });
  expect({ ...told[1], ids: told[1]!.ids!.sort() }).toEqual({ table: "people", ids: ["rec1", "rec2"] });
  expect(await reader`select name from people order by id`).toMatchObject([{ name: "Bea" }, { name: "Cay" }]);
  // Writes without a change are not reported.
  await engine.sync();
  const table = (await loadCatalog(replica)).get("tblP")!;
  const readVersion = await takeReadVersion(replica);
  people.records.delete("rec2");
  await applyRowImages(replica, table, {
    epoch: null,
    readVersion,
    rows: [],
    gone: ["rec2"],
    issues: [],
    records: [],
  });
  await until(() => told.length === 3, { what: "the write is notified" });
  expect(told[2]).toEqual({ table: "people", ids: ["rec2"] });
});

test("many ids are sent in several parts, each short enough for Postgres, and none is missing", async () => {
  const { engine, people, told, payloads } = await listened(true);
  await engine.sync();
  const ids = Array.from({ length: 2000 }, (_, index) => `rec${String(index).padStart(14, "0")}`);
  for (const id of ids) people.records.set(id, sourceRecord(id, { fld0: "x" }));
  engine.source.pageSize = 2000;
  await engine.sync();
  const named = () => told.flatMap((one) => one.ids ?? []);
  await until(() => named().length >= ids.length, { what: "all are notified" });
  expect(named().sort()).toEqual(ids);
  expect(payloads.length).toBeGreaterThan(4);
  for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8000);
});

test("nothing is sent while it is disabled", async () => {
  const { engine, people, replica, told } = await listened(false);
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann" }));
  await engine.sync();
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Bea" }));
  await engine.sync();
  // Notifications arrive in order: any others would be here.
  await replica.sql`notify basetide, '{"table":"last"}'`;
  await until(() => told.length > 0, { what: "the last one is sent" });
  expect(told).toEqual([{ table: "last" }]);
});
