/**
 * Keeps tables up to date that a sync does not build, while it builds others: a first sync of a large base takes minutes.
 * Only records that were modified are asked for; the next sync finds all else.
 *
 * An edit is in SQL within 3 s, unless so many tables are asked for that their calls would be more than half of the rate. The
 * calls use what sync leaves of it first. They count as clients', like catch-ups. Where the source notifies us of changes,
 * tables are asked for after a notification; while none has arrived for any base, also after a minute, and then as rarely as
 * live mode polls.
 */
import { type LinkedAbort, linkedAbort, Notifier } from "../../async";
import { limitsOfKey } from "../../source";
import { MINUTE_MS } from "../../time-units";
import type { NotificationState } from "../host";
import { MOST_TABLES, quietPollMs, Scheduler, URGENT_PACE, type WorkKind } from "../pacing";
import { tableCache } from "../state";
import { asClient } from "./catch-up";
import { OVERLAP_MS, pollForChanges } from "./find-modified";
import { readerOfTable } from "./patience";
import type { Reader } from "./reader";
import type { SchemaTracker } from "./schema-tracker";
import type { SyncInput } from "./sync-base";

/** How often a table is asked for: 3 s, less the time that a call and a write take. */
const EVERY_MS = 2500;

/** Whether the source notifies us of the base's changes. */
export interface NotifiedChanges {
  readonly notifications: NotificationState;
  /** When the last notification arrived, performance.now(). */
  readonly notifiedAt: number;
}

const NONE: NotifiedChanges = { notifications: "none", notifiedAt: Number.NEGATIVE_INFINITY };

interface KeepingUp extends Pick<SyncInput, "base" | "replica" | "epoch" | "cache" | "modifiedSince"> {
  notified: NotifiedChanges | null | undefined;
}

/**
 * Returns what asks for the tables in turn from the first `begin` on, until it is disposed of.
 *
 * @param isDone returns whether the sync has nothing to do for the table any longer
 */
export function keepUp(
  input: KeepingUp,
  reader: Reader,
  schemaTracker: SchemaTracker,
  isDone: (tableId: string) => boolean,
) {
  const began = { ms: input.cache.sourceClock.now(), at: performance.now() };
  let over: LinkedAbort | undefined;
  return {
    begin() {
      const { modifiedSince } = input;
      if (over || !modifiedSince) return;
      over = linkedAbort(reader.stop);
      const asking: Reader = {
        ...reader,
        limiter: asClient(reader.limiter, { deadlineMs: Number.POSITIVE_INFINITY, isSyncs: true }),
        kind: "records",
        stop: over.signal,
        counts: { requests: 0, waitMs: 0 },
        onFirstRequest: undefined,
        mayTryAgain: () => false,
      };
      const poll = { ...input, modifiedSince, schemaTracker, reader: asking };
      const kind = asked(poll, isDone, began, input.notified ?? NONE);
      // It ends with the sync, which does not wait for it.
      void new Scheduler({ stop: over.signal, wake: new Notifier() }, [kind]).run().catch(() => {});
    },
    [Symbol.dispose]() {
      over?.abort();
      over?.[Symbol.dispose]();
    },
  };
}

type Poll = Omit<Parameters<typeof pollForChanges>[0], "sinceMs">;

/** The tables that are asked for, the one first for which that is longest ago. */
function asked(
  poll: Poll,
  isDone: (tableId: string) => boolean,
  began: { ms: number | undefined; at: number },
  notified: NotifiedChanges,
): WorkKind {
  const { schemaTracker, cache, reader } = poll;
  const { sourceClock, failing } = cache;
  const { windowMs, requestsPerWindow } = limitsOfKey(reader.quotaKey);
  const leastGapMs = (windowMs / requestsPerWindow) * URGENT_PACE.every;
  /** Up to when each table is known (ms, the source's clock), by id. */
  const known = new Map<string, number>();
  /** When each table was last asked for, and when so with success, by id (performance.now()). */
  const askedAt = new Map<string, number>();
  const readFrom = new Map<string, number>();
  let lastAt = Number.NEGATIVE_INFINITY;

  const isAsked = (id: string) => {
    const { live, rebuild } = schemaTracker.table(id);
    return live !== undefined && !rebuild && isDone(id) && !failing.has(id);
  };
  /** Returns when the table is due according to notifications, performance.now(). */
  function hintedAt(id: string): number {
    const { notifications, notifiedAt } = notified;
    const at = readFrom.get(id) ?? began.at;
    if (notifications === "none" || at < notifiedAt) return at;
    // A first sync that ends within a minute leaves them to live mode's first read of the feed.
    const quietMs = at - Math.max(began.at, notifiedAt);
    return at + Math.max(MINUTE_MS, quietPollMs({ notifications, quietMs }));
  }
  async function ask(id: string, nowMs: number): Promise<void> {
    const at = performance.now();
    lastAt = at;
    askedAt.set(id, at);
    const { source, live } = schemaTracker.table(id);
    if (!source || !live) return;
    using watched = readerOfTable(reader, source, failing);
    const sinceMs = (known.get(id) ?? began.ms ?? nowMs) - OVERLAP_MS;
    await pollForChanges({ ...poll, reader: watched.reader, sinceMs }, source, tableCache(cache, live));
    known.set(id, nowMs);
    readFrom.set(id, at);
  }
  return {
    most: MOST_TABLES,
    isAside: (id) => failing.has(id),
    *items() {
      const nowMs = sourceClock.now();
      if (nowMs === undefined) return;
      const ids = schemaTracker.tables.flatMap(({ id }) => (isAsked(id) ? [id] : []));
      const gapMs = Math.max(EVERY_MS / ids.length, leastGapMs);
      for (const id of ids.toSorted((a, b) => (askedAt.get(a) ?? 0) - (askedAt.get(b) ?? 0))) {
        const dueAt = Math.max(lastAt + gapMs, hintedAt(id));
        yield { id, dueInMs: dueAt - performance.now(), run: () => ask(id, nowMs) };
      }
    },
    onFailure(tableId, error) {
      reader.log.debug({ error, tableId }, "looking for modified records failed");
    },
  };
}
