/**
 * The rate limiter of a process: every request to a source needs a reservation before it is sent.
 *
 * Guarantees I4: never more than 5 requests in any one-second window for one base, over all processes together;
 * clients go first. The rule itself is `quota_acquire_all` in sql/control/functions; this module decides which requests
 * wait in which queue.
 */
import type { Registry } from "prom-client";
import { withTimeout } from "../async";
import type { Db } from "../context";
import type { HeldConnection } from "../http/connections";
import type { Logger } from "../log";
import type { BlockReason, LivePriority, Priority, QuotaKey } from "./backend";
import { CallerCounter } from "./caller-counter";
import { processClock, type QuotaClock } from "./clock";
import { type ControlPlane, type Counting, controlPlane } from "./control-plane";
import { createFallbackLimiter, type FallbackLimiter, withFallback } from "./fallback-limiter";
import { type Heartbeat, startHeartbeat } from "./heartbeat";
import { limitsOfKey, sqlLimitsOf, strictest } from "./limits";
import { quotaMetrics } from "./metrics";
import { Recent } from "./recent";
import { createSchedulingDelay } from "./scheduling-delay";
import { createWaitQueue, type WaitQueue } from "./wait-queue";
import type { Connections } from "./waiter";

/** The longest pause that is recorded, ms: a month and a day. */
const LONGEST_BLOCK_MS = 32 * 86_400_000;
/** How long the control plane may take to record a spent cap, ms. */
const SPENT_CAP_MS = 10_000;

export interface RateLimiterOptions {
  /** A control plane that does not answer within this time counts as unavailable, ms. */
  callTimeoutMs?: number;
  /**
   * Names a process that serves clients while the control plane is unavailable (a proxy's host and port). Other
   * processes report the outage instead.
   */
  instanceId?: string;
  clock?: QuotaClock;
}

interface QuotaUsage {
  /** The current month in UTC: `2026-11`. */
  month: string;
  sync: number;
  client: number;
}

export interface ClientCall {
  deadlineMs: number;
  signal: AbortSignal;
  /** Requests of different callers are granted in turn; requests without a name count as one caller. */
  caller?: string;
  /** Who the request is shown as in the usage of the base: `own`, `console`, or the first letters of a key. */
  shownAs?: string | undefined;
  /** The request uses the base's own key, so it also counts against the limit of that key's user. */
  isOwnKey?: boolean;
  /** The pool that the request's connection comes from; absent if it needs none. */
  connections?: Connections | undefined;
  /** As in `WaitOptions`. */
  complete?: Promise<void> | undefined;
}

export interface SyncCall {
  /** For a change that someone waits to see: gets one reservation in five, however much clients request. */
  live?: LivePriority | undefined;
  /** The source's user, where the source's limit per user may apply. */
  user?: string | null | undefined;
  /** The pool that the request's connection comes from; absent if it needs none. */
  connections?: Connections | undefined;
}

export interface RateLimiter {
  /**
   * Resolves when a sync request may be sent. It must then be sent at once, on the returned connection.
   *
   * @param share requests per window that sync may use (`syncShare`)
   * @throws BasetideError `control_unavailable`; the error of opening a connection; the signal's reason
   */
  acquireSync(
    key: QuotaKey,
    share: number,
    signal: AbortSignal,
    options?: SyncCall,
  ): Promise<HeldConnection | undefined>;
  /**
   * Resolves when a client's request may be sent, as `acquireSync`. A process with a fallback limiter goes on
   * without the control plane, at a lower rate.
   *
   * @throws BasetideError `quota_timeout` once it is known that it would be later than `deadlineMs` from now;
   *   `control_unavailable` if there is no fallback limiter; the error of opening a connection; the signal's
   *   reason, and the reservation goes to the next waiter
   */
  acquireClient(key: QuotaKey, call: ClientCall): Promise<HeldConnection | undefined>;
  /**
   * Resolves when a client's request may be sent whose key the source has not accepted for the base: after clients
   * and sync, and rarely. It is not counted: see `countServed`.
   *
   * @throws BasetideError as `acquireClient`
   */
  acquireUnproven(key: QuotaKey, call: ClientCall): Promise<HeldConnection | undefined>;
  /**
   * Counts a request of `acquireUnproven` in the month, because the source has served it. Never fails.
   *
   * @param shownAs as in `ClientCall`
   */
  countServed(key: QuotaKey, shownAs?: string): Promise<void>;
  /**
   * Records that the source answered 429. `rate_limited`: no request of the key is granted for `ms`.
   * `billing_limit`: the month's cap is used up for `ms`; this is recorded for display only and stops no request:
   * sync stops by itself, and clients get the source's answer. Never fails, so that the source's answer reaches the
   * caller.
   *
   * @param options.isOwn false if a client's key got the answer, which may be that client's own limit. Requests
   *   pause then only if the base had enough requests to be over its limit
   */
  block(key: QuotaKey, ms: number, reason: BlockReason, options?: { isOwn: boolean }): Promise<void>;
  /**
   * Returns the requests granted this month, without those granted while the control plane was unavailable.
   *
   * @throws BasetideError `control_unavailable`
   */
  usage(key: QuotaKey): Promise<QuotaUsage>;
  /**
   * Deletes the state of a deleted base.
   *
   * @throws BasetideError `control_unavailable`
   */
  forget(key: QuotaKey): Promise<void>;
  /**
   * Returns the reservations of aborted requests, which would otherwise count in the month. Stops the heartbeat, and
   * stores the last counts. Never fails.
   */
  close(): Promise<void>;
}

export function createRateLimiter(
  ctx: { db: Db; log: Logger; metrics: Registry },
  options: RateLimiterOptions = {},
): RateLimiter {
  const { callTimeoutMs = 1000, instanceId, clock = processClock } = options;
  const metrics = quotaMetrics(ctx.metrics);
  const queues = new Recent<KeyQueues>(clock.now);
  const fallbacks = new Recent<FallbackLimiter>(clock.now);
  const delay = createSchedulingDelay(clock);
  const callers = new CallerCounter(ctx);
  let awayFrom = -Infinity;

  const control = controlPlane(ctx.db, clock, callTimeoutMs, (isAway, error) => {
    metrics.fallback(isAway);
    if (isAway) {
      awayFrom = clock.now();
      ctx.log.warn({ error }, "control plane unreachable; the fallback limiter serves clients, sync waits");
    } else ctx.log.info({ awayMs: Math.round(clock.now() - awayFrom) }, "control plane reachable again");
  });

  const heartbeat =
    instanceId === undefined ? undefined : startHeartbeat(control, clock, instanceId, strictest().windowMs);

  function queueOf(key: QuotaKey, kind: Priority, share: number, counting: Counting): WaitQueue {
    return queues.get(key, createKeyQueues).queueOf(kind, share, counting, () => {
      const shared = control.backend(key, kind, share, counting);
      const backend =
        (kind === "client" || kind === "unproven") && heartbeat
          ? withFallback(shared, () => fallbackOf(key, heartbeat), heartbeat, clock)
          : shared;
      return createWaitQueue(kind, backend, clock, delay, metrics.eventsOf(kind));
    });
  }

  function fallbackOf(key: QuotaKey, { share, freeFrom }: Heartbeat): FallbackLimiter {
    const fallback = fallbacks.get(key, () => createFallbackLimiter(clock, limitsOfKey(key).windowMs));
    fallback.open(share, freeFrom);
    return fallback;
  }

  /** A client's own limit pauses no other client; in exchange, only the clients that meet a base's limit see it. */
  async function blockIfPlausible(key: QuotaKey, ms: number): Promise<void> {
    try {
      const [row] = await control.call(
        (db) => db<{ is_blocked: boolean }[]>`
          select quota_block(${key}, ${sqlLimitsOf(key)}::source_limits, ${ms}, 'rate_limited', null, false) as is_blocked`,
      );
      if (!row!.is_blocked) return;
      metrics.blocked("rate_limited");
      queues.get(key, createKeyQueues).pause();
      ctx.log.warn({ quotaKey: key, blockMs: ms }, "Airtable rate-limited a client");
      if (heartbeat) fallbackOf(key, heartbeat).pauseUntil(clock.now() + ms);
    } catch (error) {
      ctx.log.debug({ quotaKey: key, error }, "recording a client's rate limit failed");
    }
  }

  return {
    acquireSync(key, share, signal, { user, connections, live } = {}) {
      const kind = live ?? "sync";
      return queueOf(key, kind, share, { user }).wait(Infinity, signal, { connections });
    },
    async acquireClient(key, { deadlineMs, signal, isOwnKey, shownAs, ...waiting }) {
      const queue = queueOf(key, "client", limitsOfKey(key).requestsPerWindow, { isOwnKey });
      const held = await queue.wait(clock.now() + deadlineMs, signal, waiting);
      if (shownAs !== undefined) callers.count(key, shownAs);
      return held;
    },
    acquireUnproven: (key, { deadlineMs, signal, connections }) =>
      queueOf(key, "unproven", limitsOfKey(key).requestsPerWindow, {}).wait(
        clock.now() + deadlineMs,
        signal,
        {
          connections,
        },
      ),

    async countServed(key, shownAs) {
      if (shownAs !== undefined) callers.count(key, shownAs);
      try {
        await control.call((db) => db`select quota_served(${key})`);
      } catch (error) {
        ctx.log.debug({ quotaKey: key, error }, "counting a served call failed");
      }
    },

    async block(key, ms, reason, { isOwn } = { isOwn: true }) {
      const blockMs = Math.min(ms, LONGEST_BLOCK_MS);
      if (reason === "rate_limited" && !isOwn) return blockIfPlausible(key, blockMs);
      metrics.blocked(reason);
      const pause = () => reason === "rate_limited" && queues.get(key, createKeyQueues).pause();
      pause();
      ctx.log.warn({ quotaKey: key, blockMs, reason }, "Airtable asked for a pause");
      if (reason === "rate_limited" && heartbeat)
        fallbackOf(key, heartbeat).pauseUntil(clock.now() + blockMs);
      try {
        // A spent cap stops no request, and is found once an hour: the control plane may take its time.
        if (reason === "billing_limit")
          await withTimeout(SPENT_CAP_MS, "control_unavailable", recordSpentCap(ctx.db, key, blockMs));
        else
          await control.call(
            (db) => db`select quota_block(${key}, ${sqlLimitsOf(key)}::source_limits, ${blockMs}, ${reason})`,
          );
        // What was made before it was recorded.
        pause();
      } catch (error) {
        ctx.log.warn({ quotaKey: key, error }, "recording a pause failed; it applies in this process only");
      }
    },

    usage: (key) => readUsage(control, key),

    async forget(key) {
      await control.call((db) => db`select quota_forget(${key}, ${limitsOfKey(key).windowMs})`);
    },

    async close() {
      await Promise.all(queues.all().map((one) => one.settled()));
      await heartbeat?.leave();
      await callers.flush();
    },
  };
}

/** The wait queues of one key. */
interface KeyQueues {
  /** Returns the queue of such requests, created if there is none. */
  queueOf(kind: Priority, share: number, counting: Counting, create: () => WaitQueue): WaitQueue;
  settled(): Promise<unknown>;
  /** As `WaitQueue.pause`. */
  pause(): void;
  readonly isIdle: boolean;
}

/** A key has few queues, and looking through them costs less than a name for each. */
function createKeyQueues(): KeyQueues {
  const known: { kind: Priority; share: number; user: string; isOwnKey: boolean; queue: WaitQueue }[] = [];
  return {
    queueOf(kind, share, counting, create) {
      const { user, isOwnKey = false } = counting;
      const name = user ?? "";
      for (const one of known)
        if (one.kind === kind && one.share === share && one.user === name && one.isOwnKey === isOwnKey)
          return one.queue;
      const queue = create();
      known.push({ kind, share, user: name, isOwnKey, queue });
      return queue;
    },
    pause() {
      for (const { queue } of known) queue.pause();
    },
    settled: () => Promise.all(known.map(({ queue }) => queue.settled())),
    get isIdle() {
      return known.every(({ queue }) => queue.isIdle);
    },
  };
}

/** Caps begin again with the month (UTC), however long the statement took to arrive. */
function recordSpentCap(db: Db, key: QuotaKey, ms: number) {
  return db`
    insert into quota_blocks (key, reason, blocked_at, blocked_until)
    values (${key}, 'billing_limit', now(), least(now() + ${ms} * interval '1 ms',
      (date_trunc('month', now() at time zone 'UTC') + interval '1 month') at time zone 'UTC'))
    on conflict (key) do update
      set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until`;
}

async function readUsage(control: ControlPlane, key: QuotaKey): Promise<QuotaUsage> {
  const [row] = await control.call(
    (db) => db<{ month: string; sync: string; client: string }[]>`
    with month as (select date_trunc('month', now() at time zone 'UTC')::date as first_day),
    calls as (
      select c.sync, c.client from quota_calls c join month on c.month = first_day where c.key = ${key}
      union all
      select w.sync_calls, w.client_calls from quota_windows w join month
        on date_trunc('month', to_timestamp(w.counted_from / 1000) at time zone 'UTC')::date = first_day
      where w.key = ${key}
    )
    select to_char((select first_day from month), 'YYYY-MM') as month,
      coalesce(sum(sync), 0) as sync, coalesce(sum(client), 0) as client
    from calls`,
  );
  return { month: row!.month, sync: Number(row!.sync), client: Number(row!.client) };
}
