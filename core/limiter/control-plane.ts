/**
 * The limiter backend in the control plane, which all processes share.
 *
 * The server's clock orders the requests of all processes. Its times are converted to this process's clock by the
 * smallest offset of recent answers, so an answer that took longer shows as late.
 *
 * I4. A promoted standby may lack the last reservations, which are committed asynchronously, while their requests
 * are on their way. After a crash of the server, `quota_acquire_all` knows from its start time; a standby has been
 * running before. Therefore a process that reaches a promoted server, for the first time or again, reserves nothing
 * until those reservations are past.
 */
import { withTimeout } from "../async";
import type { Db } from "../context";
import { BasetideError } from "../errors";
import { arrayOf, itself } from "../postgres";
import type { SourceLimits } from "../source";
import {
  type LimiterBackend,
  type Priority,
  reservationOf,
  SHARED_MS,
  STANDING_MS,
  wholeMs,
} from "./backend";
import { type Batch, createBatch } from "./batch";
import type { QuotaClock } from "./clock";
import { clockOffset } from "./clock-offset";
import type { Membership } from "./heartbeat";
import { limitsOfKey, strictest } from "./limits";
import { watchRevocations } from "./revocations";
import { createSharedTimer } from "./shared-timer";

/**
 * How long after a request the standing reservation for the next one is made, ms, at most: with those of other keys in one
 * statement.
 */
const RENEW_WITHIN_MS = 25;
/** Time without attempts after a failed call, ms. `quota_acquire_all` relies on processes being back within 1 s. */
const RETRY_AFTER_MS = 500;
/**
 * After an outage of the control plane: how long a key stays shut from the moment that a process is back, ms. By
 * then, other processes are back too (within about a second), and their own grants are out of the longest window.
 * `quota_open` has the same.
 */
const REUNION_MS = 2350;
/**
 * From the first contact with a promoted server to the first reservation there, ms: as after the start of a server.
 */
const PROMOTED_MS = 2350;
/**
 * Answers timed before the first reservation: at least FIRST_SAMPLES, and more until one round trip took at most
 * QUICK_MS (the unknown part of the offset makes reservations late by as much), or until SAMPLING_MS have passed.
 */
const FIRST_SAMPLES = 3;
const QUICK_MS = 8;
const SAMPLING_MS = 1000;

/** The most calls in one statement, which holds the locks of all of its keys for about 25 µs each. */
const MOST_IN_BATCH = 50;

/** One call of `quota_acquire_all`. */
interface AcquireCall {
  key: string;
  kind: Priority;
  share: number;
  withinMs: number[];
  back: number[];
  user: string | null;
  marginMs: number;
  isOwnKey: boolean;
  ahead: number;
}

interface AcquireRow {
  asked_at: number;
  reservations: (number | null)[];
  next_at: number;
  margin: number;
  revocations: number;
}

/** One call of `quota_acquire_standing`. */
interface StandingCall {
  key: string;
  used: number[];
  isWanted: boolean;
  marginMs: number;
}

interface StandingRow {
  asked_at: number;
  standing: number | null;
  margin: number;
}

/** The limits, besides that of the key, that the requests of a wait queue count against. */
export interface Counting {
  /** Sync: the source's user whose limit over all bases may apply. */
  user?: string | null | undefined;
  /** Client: the request uses the base's own key, and so counts as that user's. */
  isOwnKey?: boolean | undefined;
}

export interface SharedBackend extends LimiterBackend {
  /**
   * Shuts the key until all processes that used their fallback limiters are back, unless it is shut already.
   *
   * @param hasGranted this process granted requests by itself, which count from now on
   */
  rejoin(hasGranted: boolean): Promise<void>;
}

export interface ControlPlane extends Membership {
  backend(key: string, kind: Priority, share: number, counting?: Counting): SharedBackend;
  /**
   * Runs one statement against the control plane.
   *
   * @throws BasetideError `control_unavailable` if it fails or times out, or if a call did so a moment ago
   */
  call<T>(query: (db: Db) => PromiseLike<T> & { cancel?: () => void }): Promise<T>;
}

/** @param onAway called when calls begin to fail (true) and when one succeeds again (false) */
export function controlPlane(
  db: Db,
  clock: QuotaClock,
  callTimeoutMs: number,
  onAway: (isAway: boolean, error?: unknown) => void,
): ControlPlane {
  let failedAt: number | undefined;
  /** Whether the server is still to be checked: since the process started, or since a call failed. */
  let isNewcomer = true;
  let pausedUntil = -Infinity;
  const offset = clockOffset(clock);
  const revocations = watchRevocations(clock, readRevocations);

  async function call<T>(
    query: (db: Db) => PromiseLike<T> & { cancel?: () => void },
    isServed: (result: T) => boolean = () => true,
  ): Promise<T> {
    if (failedAt !== undefined && clock.now() - failedAt < RETRY_AFTER_MS) throw unavailable();
    try {
      const from = clock.now();
      const result = await within(callTimeoutMs, query(db));
      // After a standstill, the answer may be read before the timer runs: its times are of long ago.
      if (clock.now() - from > callTimeoutMs) throw noAnswerWithin(callTimeoutMs);
      if (!isServed(result)) throw new Error("the control plane's server accepts no writes");
      if (failedAt !== undefined) onAway(false);
      failedAt = undefined;
      return result;
    } catch (error) {
      if (failedAt === undefined) onAway(true, error);
      failedAt = clock.now();
      isNewcomer = true;
      revocations.lose();
      throw unavailable(error);
    }
  }

  async function readRevocations(): Promise<void> {
    const [row] = await call(
      (to) => to<{ asked_at: number; revocations: number }[]>`
        select (extract(epoch from clock_timestamp()) * 1000)::float8 as asked_at,
          (select last_value::float8 from quota_revocations) as revocations`,
    );
    revocations.learn(row!.revocations, row!.asked_at);
  }

  let learning: Promise<void> | undefined;

  /**
   * Samples the offset once for all calls that need it: a thousand bases that start together would otherwise wait for
   * each other's samples until they time out.
   */
  function learnOffset(): Promise<void> {
    learning ??= sampleOffset().finally(() => {
      learning = undefined;
    });
    return learning;
  }

  /** A first answer is slow, and a reservation that came with it would be used late unnoticed. */
  async function sampleOffset(): Promise<void> {
    const from = clock.now();
    let quickestMs = Infinity;
    for (let sample = 1; ; sample++) {
      const sentAt = clock.now();
      const [row] = await call(
        (to) => to<{ now: number; is_promoted: boolean; is_read_only: boolean }[]>`
        select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
          pg_last_xact_replay_timestamp() is not null as is_promoted,
          current_setting('transaction_read_only')::boolean as is_read_only`,
        // It answers, but grants no reservation: as good as unavailable.
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

  /** The requests per window that every key has. */
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

  const batches = new Map<string, Batch<AcquireCall, AcquireRow>>();

  /** Clients' calls have a batch of their own, so that they do not wait for those of sync. */
  function batchOf(limits: SourceLimits, isClient: boolean): Batch<AcquireCall, AcquireRow> {
    const { windowMs, requestsPerWindow, slowedPerWindow, userRequestsPerWindow } = limits;
    const name = `${isClient} ${windowMs} ${requestsPerWindow} ${slowedPerWindow} ${userRequestsPerWindow}`;
    return batches.getOrInsertComputed(name, () =>
      createBatch(clock, MOST_IN_BATCH, (calls: AcquireCall[]) => acquireAll(limits, calls)),
    );
  }

  async function acquireAll(limits: SourceLimits, calls: AcquireCall[]): Promise<AcquireRow[]> {
    // A call failed while these waited: the server may be another one now.
    if (isNewcomer || clock.now() < pausedUntil) throw unavailable();
    const column = (of: (one: AcquireCall) => unknown) => arrayOf(calls, of);
    const rows = await call(
      (to) => to<AcquireRow[]>`
        select asked_at, to_json(reservations) as reservations, next_at, margin,
          (select last_value::float8 from quota_revocations) as revocations
        from quota_acquire_all(${limits.windowMs}, ${limits.requestsPerWindow}, ${limits.slowedPerWindow},
          ${limits.userRequestsPerWindow}, ${column(({ key }) => key)}, ${column(({ kind }) => kind)},
          ${column(({ share }) => share)}, ${column(({ withinMs }) => arrayOf(withinMs, itself))},
          ${column(({ back }) => arrayOf(back, itself))}, ${column(({ user }) => user)},
          ${column(({ marginMs }) => marginMs)}, ${column(({ isOwnKey }) => isOwnKey)},
          ${column(({ ahead }) => ahead)})`,
    );
    for (const row of rows) offset.learn(row.asked_at);
    // The number was read after all rows had been made.
    const last = rows.at(-1)!;
    revocations.learn(last.revocations, last.asked_at);
    return rows;
  }

  const soonStanding = createSharedTimer(clock, RENEW_WITHIN_MS);
  const standingBatches = new Map<string, Batch<StandingCall, StandingRow>>();

  function standingBatchOf(limits: SourceLimits): Batch<StandingCall, StandingRow> {
    const name = `${limits.windowMs} ${limits.requestsPerWindow}`;
    return standingBatches.getOrInsertComputed(name, () =>
      createBatch(clock, MOST_IN_BATCH, (calls: StandingCall[]) => acquireStanding(limits, calls)),
    );
  }

  async function acquireStanding(
    { windowMs, requestsPerWindow }: SourceLimits,
    calls: StandingCall[],
  ): Promise<StandingRow[]> {
    const column = (of: (one: StandingCall) => unknown) => arrayOf(calls, of);
    const rows = await call(
      (to) => to<StandingRow[]>`
        select asked_at, standing, margin from quota_acquire_standing(${windowMs}, ${requestsPerWindow},
          ${column(({ key }) => key)}, ${column(({ used }) => arrayOf(used, itself))},
          ${column(({ marginMs }) => marginMs)}, ${column(({ isWanted }) => isWanted)})`,
    );
    for (const row of rows) offset.learn(row.asked_at);
    return rows;
  }

  function backend(
    key: string,
    kind: Priority,
    share: number,
    { user = null, isOwnKey = false }: Counting = {},
  ): SharedBackend {
    const limits = limitsOfKey(key);
    const isLimitedByUser = (kind !== "client" && kind !== "unproven") || isOwnKey;
    return {
      async rejoin(hasGranted) {
        await call(
          (to) => to`
          with lock as (select pg_advisory_xact_lock(hashtextextended(${`quota:${key}`}, 0))),
          revoked as (select nextval('quota_revocations') from lock),
          now as (select extract(epoch from clock_timestamp())::float8 * 1000 as ms from revoked)
          update quota_windows as w set blocked_until = greatest(w.blocked_until, now.ms + ${REUNION_MS})
          from now where w.key = ${key} and (${hasGranted} or w.blocked_until < now.ms)`,
        );
      },
      advance: {
        spacingMs: limits.windowMs / share,
        get isWorthwhile() {
          return revocations.isSteady;
        },
        isValid: revocations.isValid,
      },
      standing: {
        soon: soonStanding,
        async renew(used, isWanted, margin) {
          if (!offset.isKnown || isNewcomer || clock.now() < pausedUntil) return null;
          const marginMs = wholeMs(margin);
          const row = await standingBatchOf(limits).add({ key, used, isWanted, marginMs }, clock.now());
          const { standing, margin: grantedMs } = row!;
          return reservationOf(standing, grantedMs + STANDING_MS, margin.delayMs + STANDING_MS, offset.ms);
        },
      },
      async acquire(withinMs, back, margin, { latestAt = -Infinity, isWanted = () => true, ahead = 0 } = {}) {
        if (!offset.isKnown || isNewcomer) await learnOffset();
        if (clock.now() < pausedUntil) return { reservations: withinMs.map(() => null), nextAt: pausedUntil };
        const marginMs = wholeMs(margin);
        const asked = { key, kind, share, withinMs, back, user, marginMs, isOwnKey, ahead };
        const windowMs = limits.windowMs + margin.dropMs;
        const batch = batchOf({ ...limits, windowMs }, kind === "client" || kind === "unproven");
        // A call that is late would otherwise have a statement of its own, and a worker that falls behind many of them.
        const sharedAt = kind === "sync" ? Math.max(latestAt, batch.sentAt + SHARED_MS) : latestAt;
        const row = await batch.add(asked, sharedAt, isWanted);
        if (!row) return { reservations: withinMs.map(() => null), nextAt: clock.now() };
        const { reservations, next_at, margin: grantedMs } = row;
        const add = offset.ms;
        const nextAt = next_at + add;
        revocations.countCall();
        if (ahead > 0) revocations.outstanding(nextAt);
        return {
          reservations: reservations.map((arrivesBy) =>
            reservationOf(arrivesBy, grantedMs, margin.delayMs, add, row.revocations),
          ),
          nextAt,
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

function within<T>(ms: number, query: PromiseLike<T> & { cancel?: () => void }): Promise<T> {
  const late = () => {
    query.cancel?.();
    throw noAnswerWithin(ms);
  };
  return withTimeout(ms, late, query);
}

function noAnswerWithin(ms: number): Error {
  return new Error(`no answer within ${ms} ms`);
}

function unavailable(cause?: unknown): BasetideError {
  return new BasetideError("control_unavailable", undefined, { cause });
}
