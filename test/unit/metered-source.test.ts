/** The only way to ask a source: what is sent, with which permit, and the effect of a 429. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { BasetideError, type ErrorCode } from "../../core/errors";
import type { HeldConnection } from "../../core/http/connections";
import { MeteredSource, neverRetry, type RateLimiter } from "../../core/limiter";
import type { MeteredSourceOptions } from "../../core/limiter/metered-source";
import { createLogger } from "../../core/log";
import { limitsOfKey, type SourceConnection } from "../../core/source";
import { metered, type Reader } from "../../core/sync/engine";
import { ReadVersionSource } from "../../core/sync/state";
import { pageOf } from "../support/fake-source";
import { repoFiles, repoRoot } from "../support/source-files";
import { sourceRecord, sourceTable } from "../support/source-records";
import { unlimitedLimiter } from "../support/unlimited-limiter";

const KEY = "airtable:app1";
const PENALTY_MS = limitsOfKey(KEY).penaltyMs;
const log = createLogger("silent", "test");
const TABLE = sourceTable("tbl1", "Table", {});
const signal = new AbortController().signal;

/** How the source answers one request. Every answer after the last one is "ok". */
type Answer = "ok" | "empty" | "stale" | "unreachable" | ErrorCode;

const stale = () =>
  new BasetideError("source_unavailable", "closed", { details: { reason: "stale_connection" } });

/** A source and a rate limiter that count each other: `wrong` has every request that breaks I4. */
function scene(answers: Answer[] = [], offsets: string[] = []) {
  const left = [...answers];
  const seen = {
    acquired: [] as string[],
    requests: [] as string[],
    answers: [] as Answer[],
    wrong: [] as string[],
  };
  const blocks: unknown[][] = [];
  /** Reservations that no request has used yet, by the connection that they came with. */
  const unused = new Set<HeldConnection>();
  const open = new Set<HeldConnection>();

  async function acquire(priority: string): Promise<HeldConnection> {
    await Promise.resolve();
    if (left[0] === "unreachable") {
      left.shift();
      throw new BasetideError("source_unavailable", "no connection");
    }
    seen.acquired.push(priority);
    const held = { [Symbol.dispose]: () => void open.delete(held) } as HeldConnection;
    unused.add(held);
    open.add(held);
    return held;
  }

  function connection(held?: HeldConnection): SourceConnection {
    const send = async <T>(what: string, ok: () => T, empty: T): Promise<T> => {
      if (!held || !open.has(held) || !unused.delete(held)) seen.wrong.push(what);
      seen.requests.push(what);
      const answer = left.shift() ?? "ok";
      seen.answers.push(answer);
      await Promise.resolve();
      if (answer === "stale") throw stale();
      if (answer === "ok" || answer === "unreachable") return ok();
      if (answer === "empty") return empty;
      throw new BasetideError(answer);
    };
    const list = (ids: readonly string[]) =>
      pageOf(
        ids.map((id) => sourceRecord(id, {})),
        offsets.shift(),
      );
    return {
      over: (next) => connection(next),
      getSchema: () => send("schema", () => ({ tables: [TABLE] }), { tables: [] }),
      getRecord: (_base, _table, id) => send(`get ${id}`, () => sourceRecord(id, {}), null),
      listByIds: (_base, _table, ids) => send(`list ${ids.length}`, () => list(ids), pageOf([])),
    } as Partial<SourceConnection> as SourceConnection;
  }

  const limiter: RateLimiter = unlimitedLimiter({
    acquireSync: () => acquire("sync"),
    acquireClient: () => acquire("client"),
    acquireUnproven: () => acquire("unproven"),
    block: async (...block) => void blocks.push(block),
  });
  const options = { connection: connection(), sourceBaseId: "app1", limiter, quotaKey: KEY, signal };
  return { options, seen, blocks, open };
}

const QUEUES: MeteredSourceOptions["queue"][] = [
  { priority: "sync", share: () => 3, signal },
  { priority: "client", deadlineMs: 1000, signal, isOwnKey: true },
  { priority: "client", deadlineMs: 1000, signal },
  { priority: "unproven", deadlineMs: 1000, signal },
];

const IDS = ["rec1", "rec2", "rec3"];
const CALLS: ((source: MeteredSource) => Promise<unknown>)[] = [
  (source) => source.send((connection) => connection.getSchema("app1", signal)),
  (source) => source.listByIds(TABLE, IDS),
  (source) => source.hasRecord("tbl1", "rec1"),
  (source) => source.readRecords("tbl1", IDS),
  (source) => source.readRecords("tbl1", () => IDS),
];

const answersOf = fc.array(
  fc.constantFrom<Answer>(
    "ok",
    "empty",
    "stale",
    "unreachable",
    "source_rate_limited",
    "source_forbidden",
    "source_timeout",
    "source_billing_limit",
    "source_bad_answer",
  ),
  { maxLength: 8 },
);
const queueOf = fc.constantFrom(...QUEUES);
const callOf = fc.constantFrom(...CALLS);
const rateLimited = (answers: Answer[]) =>
  answers.filter((answer) => answer === "source_rate_limited").length;

test("I4: no request is sent without a permit of its own, and every 429 pauses the base once", async () => {
  const property = fc.asyncProperty(
    answersOf,
    queueOf,
    callOf,
    fc.boolean(),
    async (answers, queue, call, isOnce) => {
      const { options, seen, blocks, open } = scene(answers);
      await call(new MeteredSource({ ...options, queue, ...(isOnce && { retry: neverRetry }) })).catch(
        () => {},
      );
      expect(seen.wrong).toEqual([]);
      expect(seen.acquired).toEqual(Array(seen.requests.length).fill(queue.priority));
      expect(open.size, "connections that were not returned").toBe(0);
      const isOwn = queue.priority === "sync" || (queue.priority === "client" && queue.isOwnKey === true);
      const expected = queue.priority === "unproven" ? 0 : rateLimited(seen.answers);
      expect(blocks).toEqual(Array(expected).fill([KEY, PENALTY_MS, "rate_limited", { isOwn }]));
    },
  );
  await fc.assert(property, { numRuns: 500 });
});

test("a request is sent again only once, and only if its connection was stale", async () => {
  const property = fc.asyncProperty(answersOf, queueOf, async (answers, queue) => {
    const { options, seen } = scene(answers);
    const isFirstStale = answers[0] === "stale";
    await CALLS[0]!(new MeteredSource({ ...options, queue })).catch(() => {});
    const second = isFirstStale && answers[1] !== "unreachable" ? 2 : 1;
    expect(seen.requests).toHaveLength(answers[0] === "unreachable" ? 0 : second);
  });
  await fc.assert(property, { numRuns: 300 });
});

test("with neverRetry, a request is sent at most once", async () => {
  const { options, seen } = scene(["stale"]);
  const source = new MeteredSource({ ...options, queue: QUEUES[1]!, retry: neverRetry });
  await expect(CALLS[0]!(source)).rejects.toMatchObject({ code: "source_unavailable" });
  expect(seen.requests).toHaveLength(1);
});

test("an error of the rate limiter is passed on as it is, and nothing is sent", async () => {
  const { options, seen, blocks } = scene();
  const reason = new Error("gave up");
  for (const error of [new BasetideError("quota_timeout"), new BasetideError("budget_spent"), reason]) {
    const limiter = { ...options.limiter, acquireClient: () => Promise.reject(error) };
    const source = new MeteredSource({ ...options, limiter, queue: QUEUES[1]! });
    await expect(CALLS[0]!(source)).rejects.toBe(error);
  }
  expect([seen.requests, blocks]).toEqual([[], []]);
});

test("a sync outlasts a control plane that does not answer for a moment; a client and one that is stopped do not wait", async () => {
  const { options, seen } = scene();
  const away = new BasetideError("control_unavailable");
  let failures = 0;
  const failing = (times: number) => async () => {
    if (failures++ < times) throw away;
    return await options.limiter.acquireSync(KEY, 3, signal);
  };
  const limiter = { ...options.limiter, acquireSync: failing(2), acquireClient: failing(1) };
  await CALLS[0]!(new MeteredSource({ ...options, limiter, queue: QUEUES[0]! }));
  expect([failures, seen.requests]).toEqual([3, ["schema"]]);
  failures = 0;
  await expect(CALLS[0]!(new MeteredSource({ ...options, limiter, queue: QUEUES[1]! }))).rejects.toBe(away);
  const stop = new AbortController();
  const acquireSync: RateLimiter["acquireSync"] = async (_key, _share, signal) => {
    signal.throwIfAborted();
    stop.abort("over");
    throw away;
  };
  const stopped = { priority: "sync", share: () => 3, signal: stop.signal } as const;
  const source = new MeteredSource({ ...options, limiter: { ...limiter, acquireSync }, queue: stopped });
  await expect(CALLS[0]!(source)).rejects.toBe("over");
});

test("a sync fails when the control plane has been unavailable for ten seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { options } = scene();
  const away = new BasetideError("control_unavailable");
  const limiter = { ...options.limiter, acquireSync: () => Promise.reject(away) };
  let failedAt: number | undefined;
  const from = performance.now();
  const source = new MeteredSource({ ...options, limiter, queue: QUEUES[0]! });
  CALLS[0]!(source).catch(() => {
    failedAt = performance.now() - from;
  });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(failedAt).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1000);
  expect(failedAt).toBeLessThan(11_000);
});

test("a list without any of the records is not trusted: each record is requested by itself", async () => {
  const { options, seen } = scene(["empty", "ok", "empty", "source_forbidden"]);
  const source = new MeteredSource({ ...options, queue: QUEUES[1]! });
  const { records, gone } = await source.readRecords("tbl1", IDS);
  expect(records.map(({ id }) => id)).toEqual(["rec1"]);
  expect(gone).toEqual(["rec2", "rec3"]);
  expect(seen.requests).toEqual(["list 3", "get rec1", "get rec2", "get rec3"]);
});

test("ids are chosen once, when the request may be sent; without any, nothing is sent", async () => {
  const { options, seen } = scene(["stale"]);
  const source = new MeteredSource({ ...options, queue: QUEUES[0]! });
  const reservedAt: number[] = [];
  const choose = (ids: string[]) => () => {
    reservedAt.push(seen.acquired.length);
    return ids;
  };
  expect((await source.readRecords("tbl1", choose(IDS))).gone).toEqual([]);
  expect(reservedAt).toEqual([1]);
  expect(seen.requests).toHaveLength(2);
  const idle = scene();
  const none = new MeteredSource({ ...idle.options, queue: QUEUES[0]! }).readRecords("tbl1", () => []);
  expect(await none).toEqual({ records: [], gone: [] });
  expect(idle.seen.requests).toEqual([]);
});

test("a list without an end is an error", async () => {
  for (const offsets of [
    ["a", "a"],
    ["a", "b", "c", "d", "e"],
  ]) {
    const { options, seen } = scene([], offsets);
    const source = new MeteredSource({ ...options, queue: QUEUES[0]! });
    await expect(source.listByIds(TABLE, IDS)).rejects.toMatchObject({ code: "source_bad_answer" });
    expect(seen.requests.length).toBeLessThanOrEqual(IDS.length + 1);
  }
});

/** A sync's reader, whose requests are retried at once: no failure here has a pause before it. */
function readerOf({ options }: ReturnType<typeof scene>): Reader {
  const { connection, sourceBaseId, limiter, quotaKey } = options;
  return {
    connection,
    sourceBaseId,
    limiter,
    quotaKey,
    share: () => 3,
    readVersions: new ReadVersionSource(async () => 1),
    log,
    stop: signal,
    kill: signal,
    counts: { requests: 0, waitMs: 0 },
  };
}

test("I4: a sync's retries have permits, are counted, and pause the base once for each 429", async () => {
  const answer = fc.constantFrom<Answer>("stale", "source_rate_limited");
  await fc.assert(
    fc.asyncProperty(fc.array(answer, { maxLength: 8 }), async (answers) => {
      const at = scene(answers);
      const asked: string[] = [];
      const reader = { ...readerOf(at), onRequest: (kind: string) => void asked.push(kind) };
      const failed = await CALLS[0]!(metered(reader, "schema")).then(
        () => false,
        () => true,
      );
      const { seen, blocks } = at;
      // Pauses end, so they are waited for; a connection that is stale repeatedly is not.
      expect(failed).toBe(answers.lastIndexOf("stale") >= 4);
      const sent = seen.requests.length;
      expect(seen.wrong).toEqual([]);
      expect(seen.acquired).toHaveLength(sent);
      expect(reader.counts.requests).toBe(sent);
      expect(asked).toEqual(Array(sent).fill("schema"));
      expect(blocks).toHaveLength(rateLimited(seen.answers));
    }),
    { numRuns: 100 },
  );
});

test("a sync that meets the monthly limit records it, and does not pause the base", async () => {
  const at = scene(["source_billing_limit"]);
  await expect(CALLS[0]!(metered(readerOf(at)))).rejects.toMatchObject({
    code: "source_billing_limit",
    message: expect.stringContaining("Syncing is paused until"),
  });
  expect(at.blocks).toEqual([[KEY, expect.any(Number), "billing_limit"]]);
  expect(at.seen.requests).toHaveLength(1);
});

/** Limiters that delegate to another one: which queue each request uses, within one base. */
const WRAPPERS = [
  "core/sync/engine/catch-up.ts",
  "core/sync/engine/table-order.ts",
  "core/sync/pacing/budget-watch.ts",
  "core/sync/pacing/quota-split.ts",
];

test("only the metered source of core acquires permits", () => {
  const found = repoFiles("core")
    .filter((path) => path.endsWith(".ts"))
    .filter((path) => /\.acquire(?:Sync|Client|Unproven)\(/.test(readFileSync(join(repoRoot, path), "utf8")));
  expect(found).toEqual(["core/limiter/metered-source.ts", ...WRAPPERS]);
});
