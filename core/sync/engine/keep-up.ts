/**
 * Keeps tables up to date that a sync does not build, while it builds others: a first sync of a large base takes minutes.
 * Only records that were modified are asked for; the next sync finds all else.
 *
 * An edit is in SQL within 3 s, unless so many tables are asked for that their calls would be more than half of the rate. The
 * calls use what sync leaves of it first. They count as clients', like catch-ups.
 */
import { type LinkedAbort, linkedAbort, Notifier } from "../../async";
import { limitsOfKey } from "../../source";
import { MOST_TABLES, Scheduler, URGENT_PACE, type WorkKind } from "../pacing";
import { tableCache } from "../state";
import { asClient } from "./catch-up";
import { OVERLAP_MS, pollForChanges } from "./find-modified";
import { readerOfTable } from "./patience";
import type { Reader } from "./reader";
import type { SchemaTracker } from "./schema-tracker";
import type { SyncInput } from "./sync-base";

/** How often a table is asked for: 3 s, less the time that a call and a write take. */
const EVERY_MS = 2500;

type KeepingUp = Pick<SyncInput, "base" | "replica" | "epoch" | "cache" | "modifiedSince">;

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
  const beganMs = input.cache.sourceClock.now();
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
        onFirstRequest: () => {},
        mayTryAgain: () => false,
      };
      const kind = asked({ ...input, modifiedSince, schemaTracker, reader: asking }, isDone, beganMs);
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
function asked(poll: Poll, isDone: (tableId: string) => boolean, beganMs: number | undefined): WorkKind {
  const { schemaTracker, cache, reader } = poll;
  const { sourceClock, failing } = cache;
  const { windowMs, requestsPerWindow } = limitsOfKey(reader.quotaKey);
  const leastGapMs = (windowMs / requestsPerWindow) * URGENT_PACE.every;
  /** Up to when each table is known (ms, the source's clock), by id. */
  const known = new Map<string, number>();
  /** By table id (performance.now()). */
  const askedAt = new Map<string, number>();
  let lastAt = Number.NEGATIVE_INFINITY;

  const isAsked = (id: string) => {
    const { live, rebuild } = schemaTracker.table(id);
    return live !== undefined && !rebuild && isDone(id) && !failing.has(id);
  };
  async function ask(id: string, nowMs: number): Promise<void> {
    lastAt = performance.now();
    askedAt.set(id, lastAt);
    const { source, live } = schemaTracker.table(id);
    if (!source || !live) return;
    using watched = readerOfTable(reader, source, failing);
    const sinceMs = (known.get(id) ?? beganMs ?? nowMs) - OVERLAP_MS;
    await pollForChanges({ ...poll, reader: watched.reader, sinceMs }, source, tableCache(cache, live));
    known.set(id, nowMs);
  }
  return {
    most: MOST_TABLES,
    isAside: (id) => failing.has(id),
    *items() {
      const nowMs = sourceClock.now();
      if (nowMs === undefined) return;
      const ids = schemaTracker.tables.flatMap(({ id }) => (isAsked(id) ? [id] : []));
      const gapMs = Math.max(EVERY_MS / ids.length, leastGapMs);
      for (const id of ids.toSorted((a, b) => (askedAt.get(a) ?? 0) - (askedAt.get(b) ?? 0)))
        yield { id, dueInMs: lastAt + gapMs - performance.now(), run: () => ask(id, nowMs) };
    },
    onFailure(tableId, error) {
      reader.log.debug({ error, tableId }, "looking for modified records failed");
    },
  };
}
