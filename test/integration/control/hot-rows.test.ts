import { afterAll, beforeAll, expect, test } from "vitest";
import { migrateControl } from "../../../core/control/setup";
import { createLogger } from "../../../core/log";
import { controlHotRows, replicaHotRows, wearOut } from "../../support/hot-rows";
import { readerOf, testReplica } from "../../support/replica";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";

const ROWS = 300;
/** Each row is updated ten times. */
const UPDATES = 10 * ROWS;
/** A row moves once if its page was filled when the rows were created. */
const HOT_SHARE = 0.95;
/** One version of each row, and those that wait to be pruned. */
const GROWTH = 2;
const SMALL_BYTES = 128 * 1024;

const isWorn = (from: number, to: number) => to > Math.max(from, SMALL_BYTES) * GROWTH;

// Of its own: versions of rows stay as long as any transaction on the server may need them.
let server: PostgresServer;
beforeAll(async () => {
  server = await postgresServer({ version: "18" });
}, 60_000);
afterAll(() => server[Symbol.asyncDispose]());

test("rows of the control plane that are updated every few seconds stay in their pages", async () => {
  await migrateControl(server.url, createLogger("error", "test"));
  await using sql = readerOf(server.url);
  const worn = [];
  for (const hot of await controlHotRows(server.url, sql, ROWS)) {
    for (const { table, hotShare, bytesBefore, bytesAfter } of await wearOut(sql, hot, ROWS, UPDATES)) {
      if (hotShare < HOT_SHARE || isWorn(bytesBefore, bytesAfter)) {
        worn.push({ table, hotShare, bytesBefore, bytesAfter });
      }
    }
  }
  expect(worn).toEqual([]);
}, 180_000);

test("a replica's own rows that are updated by every sync stay in their pages", async () => {
  await using test = await testReplica(server.url);
  const { replica, epoch, ownerUrl } = test;
  await using sql = readerOf(ownerUrl);
  for (const hot of await replicaHotRows(ownerUrl, replica, epoch)) {
    for (const { table, hotShare, bytesAfter } of await wearOut(sql, hot, 1, UPDATES)) {
      expect([table, hotShare >= HOT_SHARE, bytesAfter <= SMALL_BYTES]).toEqual([table, true, true]);
    }
  }
}, 180_000);
