/** The ledger as processes use it: several at once, blocks, counts, crashes, and a control plane that is away. */
import postgres from "postgres";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLedger, type Ledger, trimWindows } from "../../../core/limiter";
import type { LedgerOptions } from "../../../core/limiter/rate-limiter";
import { createLogger } from "../../../core/log";
import { cuttableLine } from "../../support/cuttable-line";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { mostWithin } from "../../support/quota-simulation";

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
  // A server that has just started grants nothing for 2.1 s.
  await until(
    () =>
      database.sql`select where clock_timestamp() > pg_postmaster_start_time() + interval '2.2 s'`.then(
        (r) => r.length,
      ),
    { what: "the server is old enough" },
  );
});
afterAll(() => database[Symbol.asyncDispose]());

const never = new AbortController().signal;
let keys = 0;
const newKey = () => `airtable:app${++keys}`;

function newLedger(
  options: LedgerOptions & { url?: string } = {},
): Ledger & AsyncDisposable & { metrics: Registry } {
  const metrics = new Registry();
  const db = postgres(options.url ?? database.url, {
    max: 4,
    onnotice: () => {},
    connect_timeout: 1,
    fetch_types: false,
    backoff: () => 0.1,
  });
  const ledger = createLedger({ db, log: createLogger("silent", "test"), metrics }, options);
  async function dispose(): Promise<void> {
    await ledger.close();
    await db.end({ timeout: 1 });
  }
  return { ...ledger, metrics, [Symbol.asyncDispose]: dispose };
}

/** A ledger of a proxy that the control plane knows, and its way there. */
async function proxyLedger(name: string) {
  const line = await cuttableLine(database.url);
  const ledger = newLedger({ url: line.url, standsInAs: name });
  await until(
    () => database.sql`select from quota_proxies where id = ${name}`.then(({ length }) => length > 0),
    {
      what: "the proxy is known",
    },
  );
  async function dispose(): Promise<void> {
    await ledger[Symbol.asyncDispose]();
    await line[Symbol.asyncDispose]();
    // One that was cut off to its end left it behind.
    await database.sql`delete from quota_proxies where id = ${name}`;
  }
  return { ...ledger, line, [Symbol.asyncDispose]: dispose };
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

test("the window of a key that nobody used for a day goes, and what it counted stays", async () => {
  await using ledger = newLedger();
  const [old, recent] = [newKey(), newKey()];
  for (const key of [old, recent]) await ledger.takeClient(key, client());
  const windows = () => database.sql`select key from quota_windows where key in (${old}, ${recent})`;
  expect(await trimWindows(database.sql)).toBe(0);
  const dayAgo = 25 * 3600_000;
  await database.sql`
    update quota_windows set slots = array(select s - ${dayAgo} from unnest(slots) as s),
      client_at = client_at - ${dayAgo}, counted_from = counted_from - ${dayAgo}
    where key = ${old}`;
  expect(await trimWindows(database.sql)).toBe(1);
  expect([...(await windows())]).toEqual([{ key: recent }]);
  expect((await ledger.usage(old)).client).toBe(1);
  await ledger.takeClient(old, client());
  expect(await windows()).toHaveLength(2);
});

test("I4: syncs and clients of three processes never send six requests in a second", async () => {
  await using first = newLedger();
  await using second = newLedger();
  await using third = newLedger();
  const key = newKey();
  const sent: number[] = [];
  const stop = new AbortController();
  const started = performance.now();
  const send = () => sent.push(performance.now());
  async function syncTable(): Promise<void> {
    while (!stop.signal.aborted) await first.takeSync(key, 5, stop.signal).then(send, () => {});
  }
  async function askAgainAndAgain(ledger: Ledger): Promise<void> {
    while (!stop.signal.aborted) await ledger.takeClient(key, client(5000, stop.signal)).then(send, () => {});
  }
  const all = [syncTable(), syncTable(), ...[second, second, third, third].map(askAgainAndAgain)];
  await until(() => sent.length >= 12, { what: "twelve requests are sent" });
  stop.abort();
  await Promise.all(all);
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
  // 5 at once, 5 after one window, the rest after two.
  expect(performance.now() - started).toBeLessThan(2900);
});

test("syncs of twelve bases with keys of one user send no more than 50 requests in a second between them", async () => {
  await using one = newLedger();
  await using other = newLedger();
  const user = newKey();
  const sent: number[] = [];
  const stop = new AbortController();
  async function sync(ledger: Ledger): Promise<void> {
    const key = newKey();
    while (!stop.signal.aborted) {
      await ledger.takeSync(key, 5, stop.signal, { user }).then(
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

test("calls are counted by month and kind, places given back are not", async () => {
  await using ledger = newLedger();
  const key = newKey();
  await ledger.takeSync(key, 3, never);
  await ledger.takeClient(key, client());
  await ledger.takeClient(key, client());
  const gone = new AbortController();
  const burst = [1, 2, 3].map(() => ledger.takeClient(key, client(30_000, gone.signal)).catch(() => {}));
  await until(async () => (await ledger.usage(key)).client === 5, { what: "the last place is booked" });
  gone.abort();
  await Promise.all(burst);
  const month = new Date().toISOString().slice(0, 7);
  await until(async () => (await ledger.usage(key)).client === 4, { what: "the place is given back" });
  expect(await ledger.usage(key)).toEqual({ month, sync: 1, client: 4 });

  await database.sql`update quota_windows set counted_from = counted_from - 11000 where key = ${key}`;
  await ledger.takeSync(key, 3, never);
  expect(await database.sql`select month::text, sync, client from quota_calls where key = ${key}`).toEqual([
    { month: `${month}-01`, sync: "1", client: "4" },
  ]);
  expect(await ledger.usage(key)).toEqual({ month, sync: 2, client: 4 });
  expect(await metric(ledger, "basetide_quota_grants_total", { kind: "sync" })).toBe(2);
});

/** A key with a place booked and shut by another process before its time. */
async function shutInTime(proxy: Ledger, worker: Ledger) {
  for (let blocks = 1; ; blocks++) {
    const key = newKey();
    for (let i = 0; i < 5; i++) await proxy.takeClient(key, client());
    let isOver = false;
    const booked = proxy
      .takeClient(key, client(2000))
      .then(
        () => "sent",
        (error: { code: string }) => error.code,
      )
      .finally(() => {
        isOver = true;
      });
    await until(() => proxy.usage(key).then(({ client: calls }) => calls === 6), {
      what: "a place is booked",
    });
    await worker.block(key, 30_000, "rate_limited");
    // A place is booked only 300 ms ahead: a busy machine may have missed it.
    if (!isOver) return { key, booked, blocks };
  }
}

test("a 429 seen by one process stops the clients and the sync of all, those with a place too", async () => {
  await using worker = newLedger();
  await using proxy = newLedger();
  const { key, booked, blocks } = await shutInTime(proxy, worker);
  const blockedAt = performance.now();
  expect(await booked).toBe("quota_timeout");
  expect(performance.now() - blockedAt).toBeLessThan(1200);
  await expect(proxy.takeClient(key, client(29_000))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(worker.takeSync(key, 3, AbortSignal.timeout(50))).rejects.toThrow();
  expect((await proxy.usage(key)).client).toBe(5);
  expect(await metric(worker, "basetide_quota_blocks_total", { reason: "rate_limited" })).toBe(blocks);
});

test("I7: a crash of the server forgets no pause, and lets nobody go at once who may have gone before it", async () => {
  await using ledger = newLedger();
  const [used, blocked] = [newKey(), newKey()];
  await ledger.takeClient(used, client());
  await ledger.block(blocked, 30_000, "rate_limited");
  // What recovery does to an unlogged table.
  await database.sql`truncate quota_windows`;
  await expect(ledger.takeClient(used, client(1500))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(ledger.takeClient(blocked, client(20_000))).rejects.toMatchObject({ code: "quota_timeout" });
  await ledger.takeClient(newKey(), client(50));
});

test("while the control plane is away a proxy's clients go on at a lower rate, sync says so, and a pause is kept", async () => {
  await using ledger = await proxyLedger("lonely");
  const key = newKey();
  ledger.line.cut();
  await expect(ledger.takeSync(key, 3, never)).rejects.toMatchObject({ code: "control_unavailable" });
  expect(await metric(ledger, "basetide_quota_fallback")).toBe(1);
  const startedAt = performance.now();
  await Promise.all([1, 2].map(() => ledger.takeClient(key, client())));
  // Others may have booked ahead before they knew.
  expect(performance.now() - startedAt).toBeGreaterThan(3000);
  await expect(ledger.takeClient(key, client(500))).rejects.toMatchObject({ code: "quota_timeout" });
  await ledger.block(key, 30_000, "rate_limited");
  await expect(ledger.takeClient(key, client(5000))).rejects.toMatchObject({ code: "quota_timeout" });
  await expect(ledger.usage(key)).rejects.toMatchObject({ code: "control_unavailable" });
});

test("without the control plane nothing is granted by who is no proxy, or one that was never known", async () => {
  await using worker = newLedger({ url: NOWHERE });
  await using proxy = newLedger({ url: NOWHERE, standsInAs: "new" });
  for (const ledger of [worker, proxy]) {
    const refused = ledger.takeClient(newKey(), client());
    await expect(refused).rejects.toMatchObject({ code: "control_unavailable" });
  }
});

test("I4: a proxy cut off alone, others with the ledger, and its return: never six requests in a second", async () => {
  await using cutOff = await proxyLedger("cut off");
  await using other = newLedger();
  const key = newKey();
  const sent: number[] = [];
  let alone = 0;
  const stop = new AbortController();
  async function askAgainAndAgain(ledger: Ledger, onSent = () => {}): Promise<void> {
    while (!stop.signal.aborted) {
      await ledger.takeClient(key, client(20_000, stop.signal)).then(
        () => {
          sent.push(performance.now());
          onSent();
        },
        () => {},
      );
    }
  }
  const all = [
    ...[other, other, other].map((ledger) => askAgainAndAgain(ledger)),
    ...[cutOff, cutOff, cutOff].map((ledger) => askAgainAndAgain(ledger, () => alone++)),
  ];
  await until(() => sent.length >= 8, { what: "both send" });
  cutOff.line.cut();
  const isAlone = async () => (await metric(cutOff, "basetide_quota_fallback")) === 1;
  await until(isAlone, { what: "it is cut off" });
  const before = alone;
  await until(() => alone >= before + 6, { what: "it goes on by itself", timeoutMs: 20_000 });
  cutOff.line.mend();
  await until(async () => !(await isAlone()), { what: "it is back" });
  const then = sent.length;
  // Twelve at five a second: those of the time without it leave three.
  await until(() => sent.length >= then + 20, { what: "all is as before", timeoutMs: 20_000 });
  stop.abort();
  await Promise.all(all);
  expect(mostWithin(sent, 1000)).toBeLessThanOrEqual(5);
});

test("what a proxy may give out by itself depends on how many there are, and one that ends is forgotten", async () => {
  const shares = () => database.sql`select id, share from quota_proxies order by id`;
  {
    await using _one = await proxyLedger("p1");
    await using _two = await proxyLedger("p2");
    await until(async () => (await shares()).every(({ share }) => share === 2), { what: "two each" });
    await using _three = await proxyLedger("p3");
    await until(async () => (await shares()).every(({ share }) => share === 1), { what: "one each" });
  }
  const line = await cuttableLine(database.url);
  {
    await using _stopped = newLedger({ url: line.url, standsInAs: "stopped" });
    await until(async () => (await shares()).length === 1, { what: "it is known" });
  }
  expect(await shares()).toEqual([]);
  await line[Symbol.asyncDispose]();
});

test("I4: who was on its own shuts the key for everybody when it is back, until its last calls are past", async () => {
  await using cutOff = await proxyLedger("on its own");
  await using other = newLedger();
  const key = newKey();
  await cutOff.takeClient(key, client());
  cutOff.line.cut();
  await Promise.all([1, 2].map(() => cutOff.takeClient(key, client())));
  cutOff.line.mend();
  const isShut = async () => {
    await cutOff.takeClient(key, client(100)).catch(() => {});
    const [row] = await database.sql<{ is_shut: boolean }[]>`
      select blocked_until > extract(epoch from clock_timestamp()) * 1000 + 1500 as is_shut
      from quota_windows where key = ${key}`;
    return row!.is_shut;
  };
  await until(isShut, { what: "it is back, and has shut the key" });
  await expect(other.takeClient(key, client(1000))).rejects.toMatchObject({ code: "quota_timeout" });
  await other.takeClient(key, client());
});

test("a control plane that hangs counts as away, and is back when it answers", async () => {
  await using ledger = newLedger({ callTimeoutMs: 100 });
  const key = newKey();
  await ledger.takeClient(key, client());
  const lock = await database.sql.reserve();
  await lock`begin`;
  await lock`lock table quota_windows`;
  await expect(ledger.takeSync(key, 3, never)).rejects.toMatchObject({ code: "control_unavailable" });
  await lock`rollback`;
  lock.release();
  await until(() => ledger.takeSync(key, 3, never).then(() => true), {
    what: "sync goes on",
    retryErrors: true,
  });
  expect(await metric(ledger, "basetide_quota_fallback")).toBe(0);
});

test("forgetting a base drops its counts at once, and its window when that is past", async () => {
  await using ledger = newLedger();
  const key = newKey();
  await ledger.takeClient(key, client());
  await ledger.forget(key);
  expect(await ledger.usage(key)).toMatchObject({ sync: 0, client: 0 });
  const rows = () => database.sql`select from quota_windows where key = ${key}`.then(({ length }) => length);
  expect(await rows()).toBe(1);
  await until(
    () =>
      ledger
        .forget(key)
        .then(rows)
        .then((left) => left === 0),
    { what: "the window is past" },
  );
});

test("a call that is called off before it is made takes no place", async () => {
  await using ledger = newLedger();
  const key = newKey();
  const reason = new Error("the client went away");
  await expect(ledger.takeClient(key, client(1000, AbortSignal.abort(reason)))).rejects.toBe(reason);
  expect(await ledger.usage(key)).toMatchObject({ client: 0 });
});
