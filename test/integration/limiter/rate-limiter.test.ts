/** The rate limiter as processes use it: several at once, blocks, counts, crashes, and an unavailable control plane. */
import postgres from "postgres";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CallCounter,
  createRateLimiter,
  processClock,
  type QuotaClock,
  type RateLimiter,
} from "../../../core/limiter";
import type { RateLimiterOptions } from "../../../core/limiter/rate-limiter";
import { createLogger } from "../../../core/log";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { faultProxy } from "../../support/fault-proxy";
import { mostWithin } from "../../support/permit-simulation";
import { until } from "../../support/poll";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const never = new AbortController().signal;
let keys = 0;
const newKey = () => `airtable:app${++keys}`;

function newLimiter(options: RateLimiterOptions & { url?: string } = {}) {
  const metrics = new Registry();
  const db = postgres(options.url ?? database.url, {
    max: 4,
    onnotice: () => {},
    connect_timeout: 1,
    fetch_types: false,
    backoff: () => 0.1,
  });
  const ctx = { db, log: createLogger("silent", "test"), metrics };
  const calls = new CallCounter(ctx);
  const limiter = createRateLimiter(ctx, { ...options, calls });
  async function counted(key: string): Promise<{ sync: number; client: number }> {
    await calls.flush();
    const [row] = await database.sql<{ sync: number; client: number }[]>`
      select sync::integer, client::integer from quota_calls where key = ${key}
        and month = date_trunc('month', now() at time zone 'UTC')::date`;
    return { sync: 0, client: 0, ...row };
  }
  async function dispose(): Promise<void> {
    await limiter.close();
    await db.end({ timeout: 1 });
  }
  return { ...limiter, metrics, counted, [Symbol.asyncDispose]: dispose };
}

/** The limiter of a proxy that is registered in the control plane, and its connection there. */
async function proxyLimiter(name: string) {
  const line = await cuttableProxy(database.url);
  const limiter = newLimiter({ url: line.url, instanceId: name });
  await until(
    () => database.sql`select from quota_holders where name = ${name}`.then(({ length }) => length > 0),
    {
      what: "the proxy is registered",
    },
  );
  async function dispose(): Promise<void> {
    await limiter[Symbol.asyncDispose]();
    await line[Symbol.asyncDispose]();
    // One that was cut off until its end left it behind.
    await database.sql`delete from quota_holders where name = ${name}`;
    await database.sql`delete from quota_proxies where name = ${name}`;
  }
  return { ...limiter, line, [Symbol.asyncDispose]: dispose };
}

const client = (deadlineMs = 30_000, signal = never) => ({ deadlineMs, signal });
/** A port that refuses connections. */
const NOWHERE = "postgres://nobody@127.0.0.1:1/nothing";

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

async function metric(
  of: { metrics: Registry },
  name: string,
  labels: Record<string, string> = {},
): Promise<number> {
  const found = await of.metrics.getSingleMetric(name)!.get();
  const matching = found.values.filter(({ labels: has }) =>
    Object.entries(labels).every(([label, value]) => has[label as keyof typeof has] === value),
  );
  return matching.reduce((sum, { value }) => sum + value, 0);
}

test("what is known of a key that was unused for a day is deleted, and its counts stay", async () => {
  const [old, recent] = [newKey(), newKey()];
  {
    await using limiter = newLimiter();
    for (const key of [old, recent]) await limiter.acquireClient(key, client());
  }
  const known = () => database.sql`select key from quota_keys where key in (${old}, ${recent})`;
  await database.sql`select quota_trim()`;
  expect(await known()).toHaveLength(2);
  const dayMs = 25 * 3600_000;
  await database.sql`update quota_permits set rests_until = rests_until - ${dayMs} where key = ${old}`;
  await database.sql`select quota_trim()`;
  expect([...(await known())]).toEqual([{ key: recent }]);
  await using limiter = newLimiter();
  expect((await limiter.counted(old)).client).toBe(1);
  await limiter.acquireClient(old, client());
  expect(await known()).toHaveLength(2);
});

test("I4: syncs and clients of three processes never send six requests in a second", async () => {
  await using first = newLimiter();
  await using second = newLimiter();
  await using third = newLimiter();
  const key = newKey();
  const sent: number[] = [];
  const stop = new AbortController();
  const send = () => sent.push(performance.now());
  async function syncTable(): Promise<void> {
    while (!stop.signal.aborted) await first.acquireSync(key, 5, stop.signal).then(send, () => {});
  }
  async function askAgainAndAgain(limiter: RateLimiter): Promise<void> {
    while (!stop.signal.aborted)
      await limiter.acquireClient(key, client(5000, stop.signal)).then(send, () => {});
  }
  const all = [syncTable(), syncTable(), ...[second, second, third, third].map(askAgainAndAgain)];
  await until(() => sent.length >= 12, { what: "twelve requests are sent" });
  stop.abort();
  await Promise.all(all);
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
});

test("syncs of two accounts share a base, whatever their rates", async () => {
  await using turbo = newLimiter();
  await using usual = newLimiter();
  const key = newKey();
  const stop = new AbortController();
  const sent = { turbo: 0, usual: 0 };
  async function sync(limiter: RateLimiter, share: number, name: keyof typeof sent): Promise<void> {
    while (!stop.signal.aborted)
      await limiter.acquireSync(key, share, stop.signal).then(
        () => sent[name]++,
        () => {},
      );
  }
  const all = [sync(turbo, 5, "turbo")];
  await until(() => sent.turbo >= 5, { what: "one uses the whole rate" });
  all.push(sync(usual, 3, "usual"));
  await until(() => sent.usual >= 5, { what: "the other has its part" });
  const { turbo: before } = sent;
  await until(() => sent.turbo >= before + 5, { what: "the first still has its part" });
  stop.abort();
  await Promise.all(all);
});

test("syncs of twelve bases with keys of one user send at most 50 requests per second in total", async () => {
  await using one = newLimiter();
  await using other = newLimiter();
  const user = newKey();
  const sent: number[] = [];
  const stop = new AbortController();
  async function sync(limiter: RateLimiter): Promise<void> {
    const key = newKey();
    while (!stop.signal.aborted) {
      await limiter.acquireSync(key, 5, stop.signal, { user }).then(
        () => sent.push(performance.now()),
        () => {},
      );
    }
  }
  const all = Array.from({ length: 12 }, (_, index) => sync(index % 2 === 0 ? one : other));
  await until(() => sent.length >= 150, { what: "a hundred and fifty requests are sent" });
  stop.abort();
  await Promise.all(all);
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(50);
});

test("requests are counted by month and kind once they may be sent, and those that left are not", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  await limiter.acquireSync(key, 3, never);
  for (let sent = 0; sent < 4; sent++) await limiter.acquireClient(key, client());
  const gone = new AbortController();
  const waiting = limiter.acquireClient(key, client(30_000, gone.signal));
  gone.abort();
  await expect(waiting).rejects.toBe(gone.signal.reason);
  expect(await limiter.counted(key)).toEqual({ sync: 1, client: 4 });
  await limiter.acquireSync(key, 3, never);
  expect(await limiter.counted(key)).toEqual({ sync: 2, client: 4 });
  expect(await metric(limiter, "basetide_quota_grants_total", { kind: "sync" })).toBe(2);
});

test("a limiter that closes returns its permits, and others wait only for their rest", async () => {
  const key = newKey();
  {
    await using limiter = newLimiter();
    await Promise.all([1, 2, 3, 4, 5].map(() => limiter.acquireClient(key, client())));
  }
  const held = await database.sql`select from quota_permits where key = ${key} and session is not null`;
  expect(held).toHaveLength(0);
  await using other = newLimiter();
  await Promise.all([1, 2, 3, 4, 5].map(() => other.acquireClient(key, client(2000))));
});

test("I4: a process that ends takes nothing from another with the same name", async () => {
  const key = newKey();
  await using after = new AsyncDisposableStack();
  after.defer(async () => {
    await database.sql`delete from quota_holders where name = 'same'`;
    await database.sql`delete from quota_proxies where name = 'same'`;
  });
  await using staying = newLimiter({ instanceId: "same" });
  await using other = newLimiter();
  await until(() => staying.acquireClient(newKey(), client()).then(() => true), {
    what: "it has begun",
    retryErrors: true,
  });
  const sent: number[] = [];
  const send = () => sent.push(performance.now());
  {
    await using ending = newLimiter({ instanceId: "same" });
    await until(() => ending.acquireClient(newKey(), client()).then(() => true), {
      what: "the other has begun",
      retryErrors: true,
    });
    await Promise.all([1, 2, 3, 4, 5].map(() => staying.acquireClient(key, client()).then(send)));
  }
  await Promise.all([1, 2, 3, 4, 5].map(() => other.acquireClient(key, client()).then(send)));
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
});

test("a 429 that one process receives stops the clients and the syncs of all, also those that hold permits", async () => {
  await using worker = newLimiter();
  await using proxy = newLimiter();
  const key = newKey();
  await Promise.all([1, 2].map(() => proxy.acquireClient(key, client())));
  await worker.acquireSync(key, 3, never);
  await worker.block(key, 30_000, "rate_limited");
  await until(
    () =>
      proxy.acquireClient(key, client(20_000)).then(
        () => false,
        ({ code, details }) => code === "quota_timeout" && details.retryAfterSeconds > 20,
      ),
    { what: "the other process has heard of the pause" },
  );
  await expect(worker.acquireSync(key, 3, AbortSignal.timeout(50))).rejects.toThrow();
  expect(await metric(worker, "basetide_quota_blocks_total", { reason: "rate_limited" })).toBe(1);
});

test("a pause that is undone ends for requests that wait already", async () => {
  await using worker = newLimiter();
  await using other = newLimiter();
  const key = newKey();
  await other.block(key, 300_000, "rate_limited");
  const sent = worker.acquireSync(key, 3, AbortSignal.timeout(10_000));
  const held = () => database.sql`select from quota_permits where key = ${key} and session is not null`;
  await until(async () => (await held()).length > 0, { what: "it has a permit" });
  await database.sql`update quota_keys set blocked_until = 0 where key = ${key}`;
  await database.sql`select quota_announce(${key})`;
  await sent;
});

test("a request waits as long as it can be served in time, and is refused at once when that is no longer so", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const asked = Array.from({ length: 15 }, () =>
    limiter.acquireClient(key, { ...client(2600), caller: "one" }),
  );
  const outcomes = await Promise.allSettled(asked);
  const refused = outcomes.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  // Three windows of five begin within this time; a busy machine may miss the last.
  expect(refused.length).toBeLessThanOrEqual(5);
  for (const { reason } of refused) expect(reason).toMatchObject({ code: "quota_timeout" });
  const late = Array.from({ length: 20 }, () => limiter.acquireClient(key, client(2600)));
  const first = await Promise.race(
    late.map((one, at) =>
      one.then(
        () => -1,
        () => at,
      ),
    ),
  );
  expect(first).toBeGreaterThanOrEqual(10);
  await Promise.allSettled(late);
});

test("callers take turns: one with twenty requests does not delay another's", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const order: string[] = [];
  const ask = (caller: string) =>
    limiter.acquireClient(key, { ...client(), caller }).then(() => order.push(caller));
  const all = [...Array.from({ length: 20 }, () => ask("many")), ask("few"), ask("few")];
  await Promise.all(all);
  expect(order.lastIndexOf("few")).toBeLessThan(12);
});

test("a request that takes long to prepare lets others go first, and then goes at once", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const { promise, resolve } = Promise.withResolvers<void>();
  const order: string[] = [];
  const prepare = () => promise;
  const late = limiter.acquireClient(key, { ...client(), prepare }).then(() => order.push("late"));
  for (let i = 0; i < 3; i++) await limiter.acquireClient(key, client()).then(() => order.push("other"));
  resolve();
  await late;
  expect(order).toEqual(["other", "other", "other", "late"]);
  const failed = limiter.acquireClient(key, {
    ...client(),
    prepare: () => Promise.reject(new Error("no body")),
  });
  await expect(failed).rejects.toThrow("no body");
});

test("a request that is not prepared at its deadline is refused then, also if the timer fires a moment early", async () => {
  let early = 20;
  const at: QuotaClock["at"] = (atMs, wake) => processClock.at(early-- > 0 ? atMs - 20 : atMs, wake);
  await using limiter = newLimiter({ clock: { ...processClock, at } });
  const key = newKey();
  await limiter.acquireClient(key, client());
  const prepare = () => new Promise<void>(() => {});
  const waiting = limiter.acquireClient(key, { ...client(300), prepare });
  await expect(waiting).rejects.toThrowError(expect.objectContaining({ code: "quota_timeout" }));
});

test("a request is prepared when its turn is near: never one that is refused, or whose client disconnects before", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const prepared: string[] = [];
  const ask = (name: string, options = client()) => {
    const prepare = async () => void prepared.push(name);
    return limiter.acquireClient(key, { ...options, prepare });
  };
  const leaving = new AbortController();
  await Promise.all(Array.from({ length: 5 }, (_, at) => ask(`${at}`)));
  expect(prepared).toHaveLength(5);
  // The five permits rest now.
  const left = ask("left", { ...client(), signal: leaving.signal });
  const [next, last] = [ask("next"), ask("last")];
  expect(prepared).toHaveLength(5);
  leaving.abort();
  await expect(left).rejects.toBe(leaving.signal.reason);
  await Promise.all([next, last]);
  expect(prepared.slice(5)).toEqual(["next", "last"]);
  await limiter.block(key, 30_000, "rate_limited");
  await expect(ask("refused", client(1500))).rejects.toMatchObject({ code: "quota_timeout" });
  expect(prepared).toHaveLength(7);
});

test("I7: a crash of the server keeps every pause, and grants no request early that may have been sent before", async () => {
  const [used, blocked] = [newKey(), newKey()];
  {
    await using limiter = newLimiter();
    await limiter.acquireClient(used, client());
    await limiter.block(blocked, 30_000, "rate_limited");
  }
  // The effect of recovery on unlogged tables.
  await database.sql`truncate quota_epochs, quota_holders, quota_keys, quota_permits, quota_wants`;
  await using limiter = newLimiter();
  await expect(limiter.acquireClient(used, client(1500))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(limiter.acquireClient(blocked, client(20_000))).rejects.toMatchObject({
    code: "quota_timeout",
  });
  await limiter.acquireClient(used, client(10_000));
  await database.sql`update quota_epochs set opened_at = 0`;
});

test("while the control plane is unavailable, a proxy's clients continue at a lower rate, sync reports it, and pauses are kept", async () => {
  await using limiter = await proxyLimiter("lonely");
  const key = newKey();
  limiter.line.cut();
  await expect(limiter.acquireSync(key, 3, never)).rejects.toMatchObject({ code: "control_unavailable" });
  expect(await metric(limiter, "basetide_quota_fallback")).toBe(1);
  const startedAt = performance.now();
  await Promise.all([1, 2].map(() => limiter.acquireClient(key, client())));
  // Others may have used their permits before they knew.
  expect(performance.now() - startedAt).toBeGreaterThan(2500);
  await expect(limiter.acquireClient(key, client(500))).rejects.toMatchObject({ code: "quota_timeout" });
  await limiter.block(key, 30_000, "rate_limited");
  await expect(limiter.acquireClient(key, client(5000))).rejects.toMatchObject({ code: "quota_timeout" });
});

test("without the control plane, only a proxy that was registered grants anything", async () => {
  await using worker = newLimiter({ url: NOWHERE });
  await using proxy = newLimiter({ url: NOWHERE, instanceId: "new" });
  for (const limiter of [worker, proxy]) {
    const refused = limiter.acquireClient(newKey(), client());
    await expect(refused).rejects.toMatchObject({ code: "control_unavailable" });
  }
});

test("I4: while one proxy is cut off, others are not, and when it returns: never six requests in a second", async () => {
  await using cutOff = await proxyLimiter("cut off");
  await using other = newLimiter();
  const key = newKey();
  const sent: number[] = [];
  let alone = 0;
  const stop = new AbortController();
  async function askAgainAndAgain(limiter: RateLimiter, onSent = () => {}): Promise<void> {
    while (!stop.signal.aborted) {
      await limiter.acquireClient(key, client(20_000, stop.signal)).then(
        () => {
          sent.push(performance.now());
          onSent();
        },
        () => {},
      );
    }
  }
  const all = [
    ...[other, other, other].map((limiter) => askAgainAndAgain(limiter)),
    ...[cutOff, cutOff, cutOff].map((limiter) => askAgainAndAgain(limiter, () => alone++)),
  ];
  await until(() => sent.length >= 8, { what: "both send" });
  cutOff.line.cut();
  const isAlone = async () => (await metric(cutOff, "basetide_quota_fallback")) === 1;
  await until(isAlone, { what: "it is cut off" });
  const before = alone;
  await until(() => alone >= before + 6, { what: "it continues by itself", timeoutMs: 20_000 });
  cutOff.line.restore();
  await until(async () => !(await isAlone()), { what: "it is back" });
  const then = sent.length;
  // Twelve at five a second: those of the outage leave three.
  await until(() => sent.length >= then + 20, { what: "everything is as before", timeoutMs: 20_000 });
  stop.abort();
  await Promise.all(all);
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
});

test("what a proxy is owed depends on the number of proxies, and one that ends is owed nothing", async () => {
  const owed = () => database.sql`select name, owed from quota_holders where owed > 0 and seen_at > 0`;
  const silent = async () =>
    (await database.sql`select quota_silent(extract(epoch from clock_timestamp())::float8 * 1000) as n`)[0]!
      .n;
  {
    await using _one = await proxyLimiter("p1");
    await using _two = await proxyLimiter("p2");
    await until(async () => (await owed()).every(({ owed }) => owed === 2), { what: "two each" });
    await using three = await proxyLimiter("p3");
    const oneEach = async () => `${(await owed()).map(({ owed }) => owed)}` === "1,1,1";
    await until(oneEach, { what: "one each" });
    three.line.cut();
    await until(async () => (await silent()) === 1, { what: "the silence is noticed" });
    three.line.restore();
    await until(async () => (await silent()) === 0, { what: "it is back" });
  }
  expect(await silent()).toBe(0);
});

test("a process that no longer hears what others need loses its lease, although its statements are answered", async () => {
  await using line = await faultProxy(addressOf(database.url), { isPostgres: false });
  await using deaf = newLimiter({ url: `${line.over(database.url)}?application_name=deaf` });
  await using other = newLimiter();
  const key = newKey();
  const stop = new AbortController();
  let sent = 0;
  async function sync(): Promise<void> {
    while (!stop.signal.aborted)
      await deaf.acquireSync(key, 5, stop.signal).then(
        () => sent++,
        () => new Promise((resolve) => setImmediate(resolve)),
      );
  }
  const all = [sync()];
  await until(() => sent >= 6, { what: "sync has all permits" });
  // New connections are refused, as by a server that has no more.
  line.target = { host: "127.0.0.1", port: 1 };
  await database.sql`
    select pg_terminate_backend(pid) from (
      select pid from pg_stat_activity where application_name = 'deaf' and query ~* '^ *(listen|select . from quota_heartbeat)'
      order by query ~* '^ *listen' desc limit 1) listening`;
  await other.acquireClient(key, client(10_000));
  stop.abort();
  await Promise.all(all);
});

test("a control plane that hangs counts as unavailable until it answers", async () => {
  await using limiter = newLimiter({ callTimeoutMs: 100 });
  const key = newKey();
  const sends = () => limiter.acquireClient(key, client()).then(() => true);
  await until(sends, { what: "an answer within so short a time", retryErrors: true });
  const lock = await database.sql.reserve();
  await lock`begin`;
  await lock`lock table quota_permits, quota_holders`;
  // Of another base: of this one, a permit may be left.
  const asking = limiter.acquireSync(newKey(), 3, never);
  await expect(asking).rejects.toMatchObject({ code: "control_unavailable" });
  await lock`rollback`;
  lock.release();
  await until(() => limiter.acquireSync(key, 3, never).then(() => true), {
    what: "sync continues",
    retryErrors: true,
  });
  const isBack = async () => (await metric(limiter, "basetide_quota_fallback")) === 0;
  await until(isBack, { what: "the metric to say so" });
});

test("a request that is canceled before it is sent takes no permit", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const reason = new Error("the client went away");
  await expect(limiter.acquireClient(key, client(1000, AbortSignal.abort(reason)))).rejects.toBe(reason);
  expect(await limiter.counted(key)).toMatchObject({ client: 0 });
});
