/** What makes a key accepted, and what ends that; the control plane is unavailable unless a test has one. */
import { randomBytes } from "node:crypto";
import pino from "pino";
import { expect, test } from "vitest";
import type { Config } from "../../core/config";
import type { Db } from "../../core/context";
import { AcceptedKeys } from "../../core/keys";

const MINUTE_MS = 60_000;
const READ = { method: "GET", status: 200, isRead: true, isConnected: true };

function setUp(given?: Db) {
  let now = 0;
  let asked = 0;
  const away = (() => {
    asked++;
    return Promise.reject(new Error("away"));
  }) as unknown as Db;
  const db = given ?? away;
  const config = {
    secretKey: randomBytes(32).toString("base64"),
    previousSecretKeys: [],
  } as unknown as Config;
  const keys = new AcceptedKeys({ db, log: pino({ level: "silent" }), config }, () => now);
  const answer = (hash: string, change: Partial<typeof READ> = {}) =>
    keys.record("appA", hash, { ...READ, ...change });
  return { keys, answer, pass: (ms: number) => (now += ms), asked: () => asked };
}

test("a 2xx makes a key accepted for a day, and a reader for ten minutes; for that base only", async () => {
  const { keys, answer, pass } = setUp();
  const hash = keys.hash("appA", "Bearer patX.y");
  expect(keys.hash("appB", "Bearer patX.y")).not.toBe(hash);
  expect(hash).not.toContain("patX");
  answer(hash);
  expect([keys.isKnown(hash), await keys.mayRead("appA", hash)]).toEqual([true, true]);
  expect(keys.isKnown(keys.hash("appB", "Bearer patX.y"))).toBe(false);
  pass(11 * MINUTE_MS);
  expect([keys.isKnown(hash), await keys.mayRead("appA", hash)]).toEqual([true, false]);
  pass(24 * 60 * MINUTE_MS);
  expect(keys.isKnown(hash)).toBe(false);
});

test.each([
  ["a preflight", { method: "OPTIONS", status: 204 }],
  ["a HEAD", { method: "HEAD" }],
  ["a 422", { status: 422 }],
  ["a 404", { status: 404 }],
  ["a 403", { status: 403 }],
  ["a redirect", { status: 302 }],
  ["a 429", { status: 429 }],
  ["a 500", { status: 500 }],
])("%s proves no key", async (_what, change) => {
  const { keys, answer } = setUp();
  answer("hash", change);
  expect([keys.isKnown("hash"), await keys.mayRead("appA", "hash")]).toEqual([false, false]);
});

test("a write makes a key accepted, but not a reader", async () => {
  const { keys, answer } = setUp();
  answer("hash", { method: "POST", isRead: false });
  expect([keys.isKnown("hash"), await keys.mayRead("appA", "hash")]).toEqual([true, false]);
});

test("a 401 ends it at once and is remembered for a minute; ten 403s in a row end it; a 404 does not", async () => {
  const { keys, answer, pass } = setUp();
  answer("hash");
  answer("hash", { status: 404 });
  expect([keys.isKnown("hash"), await keys.mayRead("appA", "hash")]).toEqual([true, true]);
  answer("hash", { status: 401 });
  expect([keys.isKnown("hash"), keys.refusedForMs("hash")]).toEqual([false, MINUTE_MS]);
  pass(MINUTE_MS);
  expect(keys.refusedForMs("hash")).toBe(0);
  answer("hash");
  for (let time = 0; time < 9; time++) answer("hash", { status: 403 });
  expect([keys.isKnown("hash"), await keys.mayRead("appA", "hash")]).toEqual([true, false]);
  answer("hash", { status: 403 });
  expect(keys.isKnown("hash")).toBe(false);
});

test("without the control plane, a known key is decided at once, and any other is unknown", async () => {
  const { keys, answer, asked } = setUp();
  answer("hash", { isConnected: false });
  expect([await keys.isAccepted("appA", "hash"), asked()]).toEqual([true, 0]);
  for (let time = 0; time < 5; time++) expect(await keys.isAccepted("appA", `other ${time}`)).toBe(false);
  expect(asked()).toBe(1);
  await keys.close();
});

test("a 401 or a 403 to a key that this process does not know ends its acceptance for others, who may have stored it", async () => {
  const statements: unknown[][] = [];
  const db = ((_text: unknown, ...values: unknown[]) => {
    statements.push(values);
    return Promise.resolve([]);
  }) as unknown as Db;
  const { keys } = setUp(db);
  for (const status of [401, 403]) keys.record("appA", `hash of ${status}`, { ...READ, status });
  keys.record("appA", "hash of a base that is not connected", { ...READ, status: 403, isConnected: false });
  await keys.close();
  expect(statements).toEqual([
    ["appA", "hash of 401"],
    ["appA", "hash of 403"],
  ]);
});
