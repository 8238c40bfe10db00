/** The rate limiter as processes use it: several at once, blocks, counts, crashes, and an unavailable control plane. */
import postgres from "postgres";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRateLimiter, type RateLimiter, trimWindows } from "../../../core/limiter";
import type { RateLimiterOptions } from "../../../core/limiter/rate-limiter";
import { createLogger } from "../../../core/log";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { mostWithin } from "../../support/quota-simulation";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
  // A server that has just started grants nothing for 2.35 s.
  await until(
    () =>
      database.sql`select where clock_timestamp() > pg_postmaster_start_time() + interval '2.4 s'`.then(
        (r) => r.length,
      ),
    { what: "the server is old enough" },
  );
});
afterAll(() => database[Symbol.asyncDispose]());

const never = new AbortController().signal;
let keys = 0;
const newKey = () => `airtable:app${++keys}`;

function newLimiter(
  options: RateLimiterOptions & { url?: string } = {},
): RateLimiter & AsyncDisposable & { metrics: Registry } {
  const metrics = new Registry();
  const db = postgres(options.url ?? database.url, {
    max: 4,
    onnotice: () => {},
    connect_timeout: 1,
    fetch_types: false,
    backoff: () => 0.1,
  });
  const limiter = createRateLimiter({ db, log: createLogger("silent", "test"), metrics }, options);
  async function dispose(): Promise<void> {
    await limiter.close();
    await db.end({ timeout: 1 });
  }
  return { ...limiter, metrics, [Symbol.asyncDispose]: dispose };
}

/** The limiter of a proxy that is registered in the control plane, and its connection there. */
async function proxyLimiter(name: string) {
  const line = await cuttableProxy(database.url);
  const limiter = newLimiter({ url: line.url, instanceId: name });
  await until(
    () => database.sql`select from quota_proxies where id = ${name}`.then(({ length }) => length > 0),
    {
      what: "the proxy is registered",
    },
  );
  async function dispose(): Promise<void> {
    await limiter[Symbol.asyncDispose]();
    await line[Symbol.asyncDispose]();
    // One that was cut off until its end left it behind.
    await database.sql`delete from quota_proxies where id = ${name}`;
  }
  return { ...limiter, line, [Symbol.asyncDispose]: dispose };
}

const client = (deadlineMs = 30_000, signal = never) => ({ deadlineMs, signal });
/** A port that refuses connections. */
const NOWHERE = "postgres://nobody@127.0.0.1:1/nothing";

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

test("the window of a key that was unused for a day is deleted, and its counts stay", async () => {
  await using limiter = newLimiter();
  const [old, recent] = [newKey(), newKey()];
  for (const key of [old, recent]) await limiter.acquireClient(key, client());
  const windows = () => database.sql`select key from quota_windows where key in (${old}, ${recent})`;
  expect(await trimWindows(database.sql)).toBe(0);
  const dayAgo = 25 * 3600_000;
  await database.sql`
    update quota_windows set reservations = array(select s - ${dayAgo} from unnest(reservations) as s),
      client_at = client_at - ${dayAgo}, counted_from = counted_from - ${dayAgo}
    where key = ${old}`;
  expect(await trimWindows(database.sql)).toBe(1);
  expect([...(await windows())]).toEqual([{ key: recent }]);
  expect((await limiter.usage(old)).client).toBe(1);
  await limiter.acquireClient(old, client());
  expect(await windows()).toHaveLength(2);
});

test("I4: syncs and clients of three processes never send six requests in a second", async () => {
  await using first = newLimiter();
  await using second = newLimiter();
  await using third = newLimiter();
  const key = newKey();
  const sent: number[] = [];
  const stop = new AbortController();
  const started = performance.now();
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
  // 5 at once, 5 after one window, the rest after two. A busy machine has longer windows, of up to 1.4 s, and takes up
  // to a second to learn the server's clock.
  expect(performance.now() - started).toBeLessThan(3900);
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

test("calls are counted by month and kind; released reservations are not", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  await limiter.acquireSync(key, 3, never);
  await limiter.acquireClient(key, client());
  await limiter.acquireClient(key, client());
  const gone = new AbortController();
  const burst = [1, 2, 3].map(() => limiter.acquireClient(key, client(30_000, gone.signal)).catch(() => {}));
  await until(async () => (await limiter.usage(key)).client === 5, { what: "the last reservation is made" });
  gone.abort();
  await Promise.all(burst);
  const month = new Date().toISOString().slice(0, 7);
  await until(async () => (await limiter.usage(key)).client === 4, { what: "the reservation is released" });
  expect(await limiter.usage(key)).toEqual({ month, sync: 1, client: 4 });

  await database.sql`update quota_windows set counted_from = counted_from - 60000 where key = ${key}`;
  await limiter.acquireSync(key, 3, never);
  expect(await database.sql`select month::text, sync, client from quota_calls where key = ${key}`).toEqual([
    { month: `${month}-01`, sync: "1", client: "4" },
  ]);
  expect(await limiter.usage(key)).toEqual({ month, sync: 2, client: 4 });
  expect(await metric(limiter, "basetide_quota_grants_total", { kind: "sync" })).toBe(2);
});

test("a limiter closes only when the reservations of aborted requests have been returned", async () => {
  const limiter = newLimiter();
  const key = newKey();
  await Promise.all([1, 2, 3].map(() => limiter.acquireClient(key, client())));
  const gone = new AbortController();
  const others = [1, 2].map(() => limiter.acquireClient(key, client(30_000, gone.signal)));
  const next = limiter.acquireClient(key, client(30_000, gone.signal)).catch(() => {});
  await Promise.all(others);
  await until(async () => (await limiter.usage(key)).client === 6, {
    what: "the next window's reservation is made",
  });
  gone.abort();
  await next;
  await limiter[Symbol.asyncDispose]();
  await using observer = newLimiter();
  expect((await observer.usage(key)).client).toBe(5);
});

/** A key with a reservation that another process blocks before its time. */
async function shutInTime(proxy: RateLimiter, worker: RateLimiter) {
  for (let blocks = 1; ; blocks++) {
    const key = newKey();
    for (let i = 0; i < 5; i++) await proxy.acquireClient(key, client());
    let isOver = false;
    const booked = proxy
      .acquireClient(key, client(2000))
      .then(
        () => "sent",
        (error: { code: string }) => error.code,
      )
      .finally(() => {
        isOver = true;
      });
    await until(() => proxy.usage(key).then(({ client: calls }) => calls === 6), {
      what: "a reservation is made",
    });
    await worker.block(key, 30_000, "rate_limited");
    // A reservation is made only 300 ms ahead: a busy machine may have missed it.
    if (!isOver) return { key, booked, blocks };
  }
}

test("a 429 that one process receives stops the clients and the syncs of all, including those with a reservation", async () => {
  await using worker = newLimiter();
  await using proxy = newLimiter();
  const { key, booked, blocks } = await shutInTime(proxy, worker);
  const blockedAt = performance.now();
  expect(await booked).toBe("quota_timeout");
  expect(performance.now() - blockedAt).toBeLessThan(1200);
  await expect(proxy.acquireClient(key, client(29_000))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(worker.acquireSync(key, 3, AbortSignal.timeout(50))).rejects.toThrow();
  expect((await proxy.usage(key)).client).toBe(5);
  expect(await metric(worker, "basetide_quota_blocks_total", { reason: "rate_limited" })).toBe(blocks);
});

test("I7: a crash of the server keeps every pause, and grants no request early that may have been sent before", async () => {
  await using limiter = newLimiter();
  const [used, blocked] = [newKey(), newKey()];
  await limiter.acquireClient(used, client());
  await limiter.block(blocked, 30_000, "rate_limited");
  // The effect of recovery on an unlogged table.
  await database.sql`truncate quota_windows`;
  await expect(limiter.acquireClient(used, client(1500))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(limiter.acquireClient(blocked, client(20_000))).rejects.toMatchObject({
    code: "quota_timeout",
  });
  await limiter.acquireClient(newKey(), client(1000));
});

test("while the control plane is unavailable, a proxy's clients continue at a lower rate, sync reports it, and pauses are kept", async () => {
  await using limiter = await proxyLimiter("lonely");
  const key = newKey();
  limiter.line.cut();
  await expect(limiter.acquireSync(key, 3, never)).rejects.toMatchObject({ code: "control_unavailable" });
  expect(await metric(limiter, "basetide_quota_fallback")).toBe(1);
  const startedAt = performance.now();
  await Promise.all([1, 2].map(() => limiter.acquireClient(key, client())));
  // Others may have reserved ahead before they knew.
  expect(performance.now() - startedAt).toBeGreaterThan(3000);
  await expect(limiter.acquireClient(key, client(500))).rejects.toMatchObject({ code: "quota_timeout" });
  await limiter.block(key, 30_000, "rate_limited");
  await expect(limiter.acquireClient(key, client(5000))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(limiter.usage(key)).rejects.toMatchObject({ code: "control_unavailable" });
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

test("what a proxy may grant on its own depends on the number of proxies, and one that ends is removed", async () => {
  const shares = () => database.sql`select id, share from quota_proxies order by id`;
  {
    await using _one = await proxyLimiter("p1");
    await using _two = await proxyLimiter("p2");
    await until(async () => (await shares()).every(({ share }) => share === 2), { what: "two each" });
    await using _three = await proxyLimiter("p3");
    await until(async () => (await shares()).every(({ share }) => share === 1), { what: "one each" });
  }
  const line = await cuttableProxy(database.url);
  {
    await using _stopped = newLimiter({ url: line.url, instanceId: "stopped" });
    await until(async () => (await shares()).length === 1, { what: "it is recorded" });
  }
  expect(await shares()).toEqual([]);
  await line[Symbol.asyncDispose]();
});

test("I4: a proxy that granted on its own blocks the key for all when it returns, until its last requests have left the window", async () => {
  await using cutOff = await proxyLimiter("on its own");
  await using other = newLimiter();
  const key = newKey();
  await cutOff.acquireClient(key, client());
  cutOff.line.cut();
  await Promise.all([1, 2].map(() => cutOff.acquireClient(key, client())));
  cutOff.line.restore();
  const isShut = async () => {
    await cutOff.acquireClient(key, client(100)).catch(() => {});
    const [row] = await database.sql<{ is_shut: boolean }[]>`
      select blocked_until > extract(epoch from clock_timestamp()) * 1000 + 1500 as is_shut
      from quota_windows where key = ${key}`;
    return row!.is_shut;
  };
  await until(isShut, { what: "it is back, and has blocked the key" });
  await expect(other.acquireClient(key, client(1000))).rejects.toMatchObject({ code: "quota_timeout" });
  await other.acquireClient(key, client());
});

test("a control plane that hangs counts as unavailable until it answers", async () => {
  await using limiter = newLimiter({ callTimeoutMs: 100 });
  const key = newKey();
  await limiter.acquireClient(key, client());
  const lock = await database.sql.reserve();
  await lock`begin`;
  await lock`lock table quota_windows`;
  await expect(limiter.acquireSync(key, 3, never)).rejects.toMatchObject({ code: "control_unavailable" });
  await lock`rollback`;
  lock.release();
  await until(() => limiter.acquireSync(key, 3, never).then(() => true), {
    what: "sync continues",
    retryErrors: true,
  });
  expect(await metric(limiter, "basetide_quota_fallback")).toBe(0);
});

test("forgetting a base deletes its counts at once, and its window when it has passed", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  await limiter.acquireClient(key, client());
  await limiter.forget(key);
  expect(await limiter.usage(key)).toMatchObject({ sync: 0, client: 0 });
  const rows = () => database.sql`select from quota_windows where key = ${key}`.then(({ length }) => length);
  expect(await rows()).toBe(1);
  await until(
    () =>
      limiter
        .forget(key)
        .then(rows)
        .then((left) => left === 0),
    { what: "the window is past" },
  );
});

test("a request that is canceled before it is sent takes no reservation", async () => {
  await using limiter = newLimiter();
  const key = newKey();
  const reason = new Error("the client went away");
  await expect(limiter.acquireClient(key, client(1000, AbortSignal.abort(reason)))).rejects.toBe(reason);
  expect(await limiter.usage(key)).toMatchObject({ client: 0 });
});
