/** Calls by purpose, in the control plane: each is counted once for each of its keys, also if saving failed before. */
import postgres from "postgres";
import { expect, test } from "vitest";
import type { Db } from "../../../core/context";
import { CallCounter } from "../../../core/limiter";
import { createLogger } from "../../../core/log";
import { controlDatabase } from "../../support/database";
import { faultProxy } from "../../support/fault-proxy";

const log = createLogger("fatal", "test");

test("calls are counted once for each key, whatever fails in between", async () => {
  await using database = await controlDatabase();
  let isAway = false;
  const db = ((...query: Parameters<Db>) =>
    isAway ? Promise.reject(new Error("away")) : database.sql(...query)) as unknown as Db;
  const counter = new CallCounter({ db, log });
  const [one, other] = [counter.counting(["a", "a own"]), counter.counting(["b", "a own"])];
  const saved = async () => {
    await counter.flush();
    const rows = await database.sql<{ name: string; calls: number }[]>`
      select key || ' ' || kind as name, calls::integer from quota_kinds order by 1`;
    return Object.fromEntries(rows.map(({ name, calls }) => [name, calls]));
  };
  one("sweep");
  one("sweep");
  one("schema");
  other("sweep");
  const first = { "a schema": 1, "a sweep": 2, "a own schema": 1, "a own sweep": 3, "b sweep": 1 };
  expect(await saved()).toEqual(first);
  expect(await saved()).toEqual(first);
  isAway = true;
  one("sweep");
  await counter.flush();
  one("sweep");
  await counter.flush();
  isAway = false;
  other("sweep");
  expect(await saved()).toEqual({ ...first, "a sweep": 4, "a own sweep": 6, "b sweep": 2 });
});

test("calls whose count was stored and whose answer was lost are not counted twice", async () => {
  await using database = await controlDatabase();
  const { hostname, port } = new URL(database.url);
  await using line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: true });
  const db = postgres(line.over(database.url), { max: 1, fetch_types: false });
  const counter = new CallCounter({ db, log });
  counter.sync("a");
  const holding = line.hold((text) => text.includes("quota_count"), "after", AbortSignal.timeout(10_000));
  const flushing = counter.flush();
  (await holding).cut();
  await flushing;
  counter.sync("a");
  await counter.flush();
  await db.end({ timeout: 1 });
  const [row] = await database.sql`select sync::integer from quota_calls where key = 'a'`;
  expect(row).toEqual({ sync: 2 });
});
