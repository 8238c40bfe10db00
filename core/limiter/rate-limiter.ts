/**
 * The rate limiter of a process: every request to a source needs a permit before it is sent.
 *
 * Guarantees I4: never more than 5 requests in any one-second window for one base, over all processes together; clients go
 * first. See docs/adr/3-permits.md.
 */
import type { Registry } from "prom-client";
import { withTimeout } from "../async";
import type { Context, Db } from "../context";
import type { HeldConnection } from "../http/connections";
import type { Logger } from "../log";
import { CLOSE_SECONDS, connectControl } from "../postgres";
import type { Priority, WaitOptions } from "./base-queue";
import { CallCounter } from "./call-counter";
import { processClock, type QuotaClock } from "./clock";
import { ControlPlane, PATIENCE_MS } from "./control-plane";
import { limitsOfKey, sqlLimitsOf } from "./limits";
import { quotaMetrics } from "./metrics";
import { PermitHolder } from "./permit-holder";

/** Identifies one rate limit: a source base, regardless of which API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;
export type BlockReason = "rate_limited" | "billing_limit";
export type RateLimiter = ReturnType<typeof createRateLimiter>;

export interface RateLimiterOptions {
  /** A control plane that does not answer within this time counts as unavailable, ms; less than a lease. */
  callTimeoutMs?: number;
  /**
   * Names a process that serves clients while the control plane is unavailable (a proxy's host and port). Other
   * processes report the outage instead.
   */
  instanceId?: string;
  clock?: QuotaClock;
  /** Counts the requests; its own unless given. */
  calls?: CallCounter;
}

export interface ClientCall extends Pick<WaitOptions, "caller" | "isOwnKey" | "connections" | "prepare"> {
  deadlineMs: number;
  signal: AbortSignal;
  /** Who the request is shown as in the usage of the base: `own`, `console`, or the first letters of a key. */
  shownAs?: string | undefined;
  /** It is counted as sync's: it only waits with those of clients. */
  isSyncs?: boolean | undefined;
}

export interface SyncCall extends Pick<WaitOptions, "user" | "connections"> {
  /** For a change that someone waits to see: goes before other sync, and clients leave it one permit. */
  isLive?: boolean | undefined;
}

/** @param ctx.db of the control plane; it needs one more connection, to listen on */
export function createRateLimiter(
  ctx: { db: Db; log: Logger; metrics: Registry },
  options: RateLimiterOptions = {},
) {
  const { callTimeoutMs = 1000, instanceId, clock = processClock, calls = new CallCounter(ctx) } = options;
  const { log, db } = ctx;
  const metrics = quotaMetrics(ctx.metrics);
  const control = new ControlPlane(db, callTimeoutMs, (isAway, error) => {
    metrics.fallback(isAway);
    if (!isAway) log.info("control plane reachable again");
    else log.warn({ error }, "control plane unreachable; proxies serve clients with few permits, sync waits");
  });
  const holder = new PermitHolder(control, clock, limitsOfKey, instanceId);
  const refusals = { log, db, metrics, control, holder, calls };

  async function acquire(
    key: QuotaKey,
    priority: Priority,
    signal: AbortSignal,
    { deadlineMs = Infinity, ...waiting }: WaitOptions & { deadlineMs?: number },
  ): Promise<HeldConnection | undefined> {
    const from = clock.now();
    const deadlineAt = from + deadlineMs;
    const held = await holder.queue(key).wait(priority, signal, { ...waiting, deadlineAt });
    metrics.granted(priority, clock.now() - from);
    return held;
  }

  return {
    /**
     * Resolves when a sync request may be sent. It must then be sent at once, on the returned connection.
     *
     * @param share requests per window that sync may use (`syncShare`)
     * @throws BasetideError `control_unavailable`; the error of opening a connection; the signal's reason
     */
    async acquireSync(key: QuotaKey, share: number, signal: AbortSignal, call: SyncCall = {}) {
      const { isLive = false, user, connections } = call;
      const held = await acquire(key, isLive ? "live" : "sync", signal, { share, user, connections });
      calls.sync(key);
      return held;
    },

    /**
     * Resolves when a client's request may be sent, as `acquireSync`. A proxy goes on without the control plane, at a
     * lower rate.
     *
     * @throws BasetideError `quota_timeout` once it is known that it would be later than `deadlineMs` from now;
     *   `control_unavailable` if it is no proxy; the error of opening a connection; the signal's reason
     */
    async acquireClient(key: QuotaKey, { signal, shownAs, isSyncs, ...waiting }: ClientCall) {
      const held = await acquire(key, "client", signal, waiting);
      if (isSyncs) calls.sync(key);
      else calls.client(key, shownAs);
      return held;
    },

    /**
     * Resolves when a client's request may be sent whose key the source has not accepted for the base: they are rare. It is
     * not counted: see `countServed`.
     *
     * @throws BasetideError as `acquireClient`
     */
    acquireUnproven: (key: QuotaKey, { deadlineMs, signal, connections, prepare }: ClientCall) =>
      acquire(key, "unproven", signal, { deadlineMs, connections, prepare }),

    /** Counts a request of `acquireUnproven`, because the source has served it. @param shownAs as in `ClientCall` */
    countServed: (key: QuotaKey, shownAs?: string): void => calls.client(key, shownAs),

    block: (key: QuotaKey, ms: number, reason: BlockReason, { isOwn } = { isOwn: true }) =>
      block(refusals, key, ms, reason, isOwn),

    /** Returns all permits, and stores the last counts. Never fails. */
    async close(): Promise<void> {
      await holder.close();
      await calls.flush();
    },
  };
}

const limiters = new WeakMap<Db, RateLimiter>();

/** Returns the limiter of a process that asks rarely: one for all who use the same pool, with one connection to listen on. */
export function rateLimiterOf(ctx: { db: Db; log: Logger; metrics: Registry }): RateLimiter {
  const limiter = limiters.get(ctx.db) ?? createRateLimiter(ctx);
  limiters.set(ctx.db, limiter);
  return limiter;
}

/**
 * The rate limiter of a process that serves many bases, on two connections of its own: the statements of all bases follow each
 * other on few connections, whose caches stay warm. On the process's common pool, one may wait for longer than it may take, for
 * example while a thousand leases start. It would count as an outage, which stops every base, and they would all start again.
 */
export function createProcessLimiter(
  ctx: Pick<Context, "config" | "log" | "metrics">,
  options?: RateLimiterOptions,
): RateLimiter {
  const db = connectControl(ctx.config.databaseUrl!, { max: 2 });
  const limiter = createRateLimiter({ ...ctx, db }, options);
  const close = () => limiter.close().then(() => db.end({ timeout: CLOSE_SECONDS }));
  return { ...limiter, close };
}

interface Refusals {
  log: Logger;
  db: Db;
  metrics: ReturnType<typeof quotaMetrics>;
  control: ControlPlane;
  holder: PermitHolder;
  calls: CallCounter;
}

/**
 * Records that the source answered 429. `rate_limited`: no request of the key is granted for `ms`, in all processes.
 * `billing_limit`: the month's cap is used up for `ms`; this is recorded for display only and stops no request: sync stops by
 * itself, and clients get the source's answer. Never fails, so that the source's answer reaches the caller.
 *
 * @param isOwn false if a client's key got the answer, which may be that client's own limit. Requests pause then only if the
 *   base had enough requests to be over its limit
 */
async function block(of: Refusals, key: QuotaKey, ms: number, reason: BlockReason, isOwn: boolean) {
  const { log, db, metrics, control, holder, calls } = of;
  try {
    if (reason === "billing_limit") {
      // A spent cap stops no request, and is found once an hour: the control plane may take its time.
      await withTimeout(PATIENCE_MS, "control_unavailable", recordSpentCap(db, key, ms));
    } else {
      const queue = holder.queue(key);
      if (isOwn) queue.pause(ms);
      // They show whether the source has throttled the key.
      await calls.flush();
      const [row] = await control.call(
        (db) => db<{ is_blocked: boolean }[]>`
          select quota_block(${key}, ${sqlLimitsOf(key)}::source_limits, ${ms}, ${holder.session}, ${queue.sentLately}, ${isOwn})
            as is_blocked`,
      );
      if (!row!.is_blocked) return;
      queue.pause(ms);
    }
  } catch (error) {
    log.warn({ quotaKey: key, error }, "recording a pause failed; it applies in this process only");
    if (!isOwn) return;
  }
  metrics.blocked(reason);
  log.warn({ quotaKey: key, blockMs: ms, reason, isOwn }, "Airtable asked for a pause");
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
