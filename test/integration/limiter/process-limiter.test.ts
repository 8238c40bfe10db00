/** A process that serves many bases has its rate limiter on connections of its own. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../../core/config";
import { createProcessLimiter } from "../../../core/limiter";
import { createLogger } from "../../../core/log";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const sessions = () =>
  database.sql`select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.then(
    ({ length }) => length,
  );

test("the limiter of a process has at most three connections, one of them to listen on, besides those of the process, and closes them", async () => {
  const before = await sessions();
  const limiter = createProcessLimiter({
    config: readConfig({ DATABASE_URL: database.url }),
    log: createLogger("silent", "test"),
    metrics: new Registry(),
  });
  try {
    const never = new AbortController().signal;
    const keys = Array.from({ length: 200 }, (_, nth) => `airtable:app${nth}`);
    await Promise.all(keys.map((key) => limiter.acquireSync(key, 3, never)));
    expect(await sessions()).toBeGreaterThan(before);
    expect(await sessions()).toBeLessThanOrEqual(before + 3);
  } finally {
    await limiter.close();
  }
  await until(async () => (await sessions()) === before, { what: "the connections are closed" });
});
