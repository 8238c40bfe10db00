/**
 * The rate limiter of a process: every request to a source needs a permit before it is sent.
 *
 * Guarantees I4: never more than 5 requests in any one-second window for one base, over all processes together; clients go
 * first. See docs/adr/3-permits.md.
 */
import type { Registry } from "prom-client";
import { withTimeout } from "../async";
import type { Db } from "../context";
import type { HeldConnection } from "../http/connections";
import type { Logger } from "../log";
import type { Connections, Priority, WaitOptions } from "./base-queue";
import { CallCounter } from "./call-counter";
import { processClock, type QuotaClock } from "./clock";
import { ControlPlane } from "./control-plane";
import { limitsOfKey, sqlLimitsOf } from "./limits";
import { quotaMetrics } from "./metrics";
import { PermitHolder } from "./permit-holder";

/** Identifies one rate limit: a source base, regardless of which API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;
export type BlockReason = "rate_limited" | "billing_limit";

/** The longest pause that is recorded, ms: a month and a day. */
const LONGEST_BLOCK_MS = 32 * 86_400_000;
/** How long the control plane may take to record a spent cap, ms. */
const SPENT_CAP_MS = 10_000;

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
  /** For a change that someone waits to see: goes before other sync, and clients leave it one permit. */
  isLive?: boolean | undefined;
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
   * Resolves when a client's request may be sent, as `acquireSync`. A proxy goes on without the
   * control plane, at a lower rate.
   *
   * @throws BasetideError `quota_timeout` once it is known that it would be later than `deadlineMs` from now;
   *   `control_unavailable` if it is no proxy; the error of opening a connection; the signal's reason, and
   *   the permit goes to the next waiter
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
   * Returns all permits, and stores the last counts. Never fails.
   */
  close(): Promise<void>;
}

/** @param ctx.db of the control plane; it needs one more connection, to listen on */
export function createRateLimiter(
  ctx: { db: Db; log: Logger; metrics: Registry },
  options: RateLimiterOptions = {},
): RateLimiter {
  const { callTimeoutMs = 1000, instanceId, clock = processClock, calls = new CallCounter(ctx) } = options;
  const metrics = quotaMetrics(ctx.metrics);
  let awayFrom = -Infinity;
  const control = new ControlPlane(ctx.db, callTimeoutMs, (isAway, error) => {
    metrics.fallback(isAway);
    if (isAway) {
      awayFrom = clock.now();
      ctx.log.warn(
        { error },
        "control plane unreachable; proxies serve clients with few permits, sync waits",
      );
    } else ctx.log.info({ awayMs: Math.round(clock.now() - awayFrom) }, "control plane reachable again");
  });
  const holder = new PermitHolder(control, clock, limitsOfKey, instanceId);

  async function acquire(
    key: QuotaKey,
    priority: Priority,
    signal: AbortSignal,
    waiting: WaitOptions,
  ): Promise<HeldConnection | undefined> {
    const from = clock.now();
    const held = await holder.queue(key).wait(priority, signal, waiting);
    metrics.granted(priority, clock.now() - from);
    return held;
  }

  /** Has what is counted of refusals up to date, and pauses the key in all processes. */
  async function recordRefusal(key: QuotaKey, ms: number, isOwn: boolean): Promise<boolean> {
    await calls.flush();
    const [row] = await control.call(
      (db) => db<{ is_blocked: boolean }[]>`
        select quota_block(${key}, ${sqlLimitsOf(key)}::source_limits, ${ms}, ${holder.session},
          ${holder.queue(key).sentLately}, ${isOwn}) as is_blocked`,
    );
    return row!.is_blocked;
  }

  return {
    async acquireSync(key, share, signal, { isLive = false, ...waiting } = {}) {
      const held = await acquire(key, isLive ? "live" : "sync", signal, { share, ...waiting });
      calls.sync(key);
      return held;
    },
    async acquireClient(key, { deadlineMs, signal, shownAs, ...waiting }) {
      const held = await acquire(key, "client", signal, { ...waiting, deadlineAt: clock.now() + deadlineMs });
      calls.client(key, shownAs);
      return held;
    },
    acquireUnproven: (key, { deadlineMs, signal, connections }) =>
      acquire(key, "unproven", signal, { connections, deadlineAt: clock.now() + deadlineMs }),

    async countServed(key, shownAs) {
      calls.client(key, shownAs);
    },

    async block(key, ms, reason, { isOwn } = { isOwn: true }) {
      const blockMs = Math.min(ms, LONGEST_BLOCK_MS);
      try {
        if (reason === "billing_limit") {
          // A spent cap stops no request, and is found once an hour: the control plane may take its time.
          await withTimeout(SPENT_CAP_MS, "control_unavailable", recordSpentCap(ctx.db, key, blockMs));
        } else {
          if (isOwn) holder.queue(key).pause(blockMs);
          if (!(await recordRefusal(key, blockMs, isOwn))) return;
          holder.queue(key).pause(blockMs);
        }
      } catch (error) {
        ctx.log.warn({ quotaKey: key, error }, "recording a pause failed; it applies in this process only");
        if (!isOwn) return;
      }
      metrics.blocked(reason);
      ctx.log.warn({ quotaKey: key, blockMs, reason, isOwn }, "Airtable asked for a pause");
    },

    async usage(key) {
      await calls.flush();
      return control.call((db) => readUsage(db, key));
    },

    async forget(key) {
      await control.call((db) => db`select quota_forget(${key})`);
    },

    async close() {
      await holder.close();
      await calls.flush();
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

async function readUsage(db: Db, key: QuotaKey): Promise<QuotaUsage> {
  const [row] = await db<{ month: string; sync: string; client: string }[]>`
    with month as (select date_trunc('month', now() at time zone 'UTC')::date as first_day)
    select to_char(first_day, 'YYYY-MM') as month, coalesce(c.sync, 0) as sync, coalesce(c.client, 0) as client
    from month left join quota_calls as c on c.month = first_day and c.key = ${key}`;
  return { month: row!.month, sync: Number(row!.sync), client: Number(row!.client) };
}
