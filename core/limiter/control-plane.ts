/**
 * The limiter backend in the control plane, which all processes share.
 *
 * The server's clock orders the calls of all processes; its times are turned into this process's clock by the
 * least time an answer has lately taken. An answer that took longer is thereby seen to be late.
 *
 * I4. A promoted standby may lack the last reservations, which are committed asynchronously, while their requests are on
 * the way. When a server has crashed, its start time tells `quota_acquire`; a standby has been running before. So a process
 * that comes to a promoted server, or back to it, reserves nothing until those are past.
 */
import type { Db } from "../context";
import { BasetideError } from "../errors";
import { type LimiterBackend, type Priority, reservationOf, wholeMs } from "./backend";
import type { QuotaClock } from "./clock";
import type { Membership } from "./heartbeat";
import { sqlLimitsOf, strictest } from "./limits";

/** After a failed call none is tried for so long, ms. `quota_acquire` counts on processes being back in 1 s. */
const RETRY_AFTER_MS = 500;
/**
 * After the control plane was away: how long a key stays shut from the moment that a process is back, ms. Others are
 * back within a second or so, and what they granted by themselves is past then. `quota_open` has the same.
 */
const REUNION_MS = 2100;
/** From the first contact with a promoted server to the first reservation there, ms: as after the start of a server. */
const PROMOTED_MS = 2100;
/** How long the least time of an answer is remembered, ms; a clock drifts by less than 2 ms meanwhile. */
const OFFSET_MEMORY_MS = 10_000;

/**
 * Answers timed before the first reservation is made: so many at least, and more until one was there and back in so few ms
 * (reservations are used late by as much as is not known), or for so long, ms.
 */
const FIRST_SAMPLES = 3;
const QUICK_MS = 8;
const SAMPLING_MS = 1000;

interface AcquireRow {
  asked_at: number;
  reservations: (number | null)[];
  next_at: number;
  margin: number;
}

/** What the calls of a wait queue count in, besides the key's own. */
export interface Counting {
  /** Sync: the user of the source whose limit over all keys may matter. */
  user?: string | null | undefined;
  /** Client: it calls with the key that syncs the base, and so as that user. */
  isOwnKey?: boolean | undefined;
}

export interface SharedBackend extends LimiterBackend {
  /**
   * Shuts the key until those who were on their own are back, unless it is shut anyway.
   *
   * @param hasGranted this process was one of them: what it granted counts from now on
   */
  rejoin(hasGranted: boolean): Promise<void>;
}

export interface ControlPlane extends Membership {
  backend(key: string, kind: Priority, share: number, counting?: Counting): SharedBackend;
  /**
   * Runs one statement against the control plane.
   *
   * @throws BasetideError `control_unavailable` if it fails, does not answer in time, or did so a moment ago
   */
  call<T>(query: (db: Db) => PromiseLike<T> & { cancel?: () => void }): Promise<T>;
}

/** @param onAway told when calls begin to fail (true) and when one succeeds again (false) */
export function controlPlane(
  db: Db,
  clock: QuotaClock,
  callTimeoutMs: number,
  onAway: (isAway: boolean, error?: unknown) => void,
): ControlPlane {
  let failedAt: number | undefined;
  /** Since the process has started, or since a call has failed, the server has not been looked at. */
  let isNewcomer = true;
  let pausedUntil = -Infinity;
  const offset = clockOffset(clock);

  async function call<T>(
    query: (db: Db) => PromiseLike<T> & { cancel?: () => void },
    isServed: (result: T) => boolean = () => true,
  ): Promise<T> {
    if (failedAt !== undefined && clock.now() - failedAt < RETRY_AFTER_MS) throw unavailable();
    try {
      const result = await within(callTimeoutMs, query(db));
      if (!isServed(result)) throw new Error("the control plane's server takes no writes");
      if (failedAt !== undefined) onAway(false);
      failedAt = undefined;
      return result;
    } catch (error) {
      if (failedAt === undefined) onAway(true, error);
      failedAt = clock.now();
      isNewcomer = true;
      throw unavailable(error);
    }
  }

  /** A first answer is a slow one: a reservation that comes with it would be used late, and nobody would know. */
  async function learnOffset(): Promise<void> {
    const from = clock.now();
    let quickestMs = Infinity;
    for (let sample = 1; ; sample++) {
      const sentAt = clock.now();
      const [row] = await call(
        (to) => to<{ now: number; is_promoted: boolean; is_read_only: boolean }[]>`
        select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
          pg_last_xact_replay_timestamp() is not null as is_promoted,
          current_setting('transaction_read_only')::boolean as is_read_only`,
        // It answers, and no process can make a reservation there: as good as away.
        ([row]) => !row!.is_read_only,
      );
      offset.learn(row!.now);
      quickestMs = Math.min(quickestMs, clock.now() - sentAt);
      const isGood = quickestMs <= QUICK_MS || clock.now() - from > SAMPLING_MS;
      if (sample >= FIRST_SAMPLES && isGood) {
        if (isNewcomer && row!.is_promoted) pausedUntil = clock.now() + PROMOTED_MS;
        isNewcomer = false;
        return;
      }
    }
  }

  async function reach(): Promise<void> {
    if (failedAt !== undefined || !offset.isKnown) await learnOffset();
  }

  /** What every key has. */
  const leastPerWindow = strictest().requestsPerWindow;

  async function heartbeat(id: string): Promise<number> {
    const [row] = await call(
      (to) =>
        to<
          { share: number }[]
        >`select quota_heartbeat(${id}, ${clock.now() - offset.ms}, ${leastPerWindow}) as share`,
    );
    return row!.share;
  }

  function backend(
    key: string,
    kind: Priority,
    share: number,
    { user = null, isOwnKey = false }: Counting = {},
  ): SharedBackend {
    const limits = sqlLimitsOf(key);
    const isLimitedByUser = (kind !== "client" && kind !== "unproven") || isOwnKey;
    return {
      async rejoin(hasGranted) {
        await call(
          (to) => to`
          with lock as (select pg_advisory_xact_lock(hashtextextended(${`quota:${key}`}, 0))),
          now as (select extract(epoch from clock_timestamp())::float8 * 1000 as ms from lock)
          update quota_windows as w set blocked_until = greatest(w.blocked_until, now.ms + ${REUNION_MS})
          from now where w.key = ${key} and (${hasGranted} or w.blocked_until < now.ms)`,
        );
      },
      async acquire(withinMs, back, margin) {
        if (!offset.isKnown || isNewcomer) await learnOffset();
        if (clock.now() < pausedUntil) return { reservations: withinMs.map(() => null), nextAt: pausedUntil };
        const [row] = await call(
          (to) => to<AcquireRow[]>`
          select asked_at, to_json(reservations) as reservations, next_at, margin
          from quota_acquire(${key}, ${limits}::source_limits, ${kind}, ${share}, ${floats(withinMs)}, ${floats(back)}, null, ${user},
            ${wholeMs(margin)}, ${isOwnKey})`,
        );
        const { asked_at, reservations, next_at, margin: marginMs } = row!;
        const add = offset.learn(asked_at);
        return {
          reservations: reservations.map((arrivesBy) =>
            reservationOf(arrivesBy, marginMs, margin.delayMs, add),
          ),
          nextAt: next_at + add,
        };
      },
      async isVoid({ arrivesBy, marginMs }) {
        const [row] = await call(
          (to) => to<{ blocked_until: number }[]>`
          select greatest(w.blocked_until, u.blocked_until) as blocked_until from quota_windows as w
          left join quota_users as u on u.id = w.user_id and ${isLimitedByUser}
          where w.key = ${key}`,
        );
        return row === undefined || row.blocked_until > arrivesBy - marginMs;
      },
      async reportLateSend({ arrivesBy, marginMs }) {
        await call((to) => to`select quota_report_late(${key}, ${arrivesBy}, null, ${marginMs})`).catch(
          () => {},
        );
      },
    };
  }

  return {
    call,
    backend,
    reach,
    heartbeat,
    async leave(id) {
      await call((to) => to`delete from quota_proxies where id = ${id}`);
    },
  };
}

interface ClockOffset {
  /** Takes in a time that the server has just answered; returns what to add to its times to have them here. */
  learn(serverNow: number): number;
  /** What it last returned. */
  readonly ms: number;
  /** Has an answer been seen lately? */
  readonly isKnown: boolean;
}

/** The least seen in the last 10 to 20 s: an answer can only be late. */
function clockOffset(clock: QuotaClock): ClockOffset {
  let [before, least, since] = [Infinity, Infinity, -Infinity];
  return {
    learn(serverNow) {
      const now = clock.now();
      if (now - since > OFFSET_MEMORY_MS) {
        [before, least, since] = [this.isKnown ? least : Infinity, Infinity, now];
      }
      least = Math.min(least, now - serverNow);
      return this.ms;
    },
    get ms() {
      return Math.min(before, least);
    },
    get isKnown() {
      return clock.now() - since <= 2 * OFFSET_MEMORY_MS;
    },
  };
}

async function within<T>(ms: number, query: PromiseLike<T> & { cancel?: () => void }): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${ms} ms`));
      query.cancel?.();
    }, ms);
  });
  try {
    return await Promise.race([query, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** A float8[] parameter: as text it needs no look at the server's types first. */
function floats(numbers: number[]): string {
  return `{${numbers.join(",")}}`;
}

function unavailable(cause?: unknown): BasetideError {
  return new BasetideError("control_unavailable", undefined, { cause });
}
