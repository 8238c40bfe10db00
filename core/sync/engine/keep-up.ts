/**
 * Keeps tables up to date that a sync does not build, while it builds others: a first sync of a large base takes minutes.
 * Only records that were modified are asked for; the next sync finds all else.
 *
 * The calls use what sync leaves of the rate, and at most a tenth of it with Turbo. They count as clients', like catch-ups.
 */
import { type LinkedAbort, linkedAbort, wait } from "../../async";
import { limitsOfKey } from "../../source";
import { tableCache } from "../state";
import { asClient } from "./catch-up";
import { OVERLAP_MS, pollForChanges } from "./find-modified";
import type { Reader } from "./reader";
import type { SchemaTracker } from "./schema-tracker";
import type { SyncInput } from "./sync-base";

/** Times between two calls. */
const SPARE_CALL_MS = 700;
const TURBO_CALL_MS = 2000;

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
      if (over || !input.modifiedSince) return;
      over = linkedAbort(reader.stop);
      void askInTurn(input, reader, schemaTracker, isDone, beganMs, over.signal);
    },
    [Symbol.dispose]() {
      over?.abort();
      over?.[Symbol.dispose]();
    },
  };
}

/** Never fails. */
async function askInTurn(
  input: KeepingUp,
  reader: Reader,
  schemaTracker: SchemaTracker,
  isDone: (tableId: string) => boolean,
  beganMs: number | undefined,
  stop: AbortSignal,
): Promise<void> {
  const { cache } = input;
  const modifiedSince = input.modifiedSince!;
  const { sourceClock, failing } = cache;
  const asking: Reader = {
    ...reader,
    limiter: asClient(reader.limiter, { deadlineMs: Number.POSITIVE_INFINITY, isSyncs: true }),
    kind: "records",
    stop,
    counts: { requests: 0, waitMs: 0 },
    onFirstRequest: () => {},
    mayTryAgain: () => false,
  };
  /** Up to when each table is known (ms, the source's clock), by id. */
  const known = new Map<string, number>();
  const order = new Set<string>();
  const isTurbo = () => reader.share() >= limitsOfKey(reader.quotaKey).requestsPerWindow;
  for (;;) {
    await wait(isTurbo() ? TURBO_CALL_MS : SPARE_CALL_MS, stop).catch(() => {});
    if (stop.aborted) return;
    for (const { id } of schemaTracker.tables) order.add(id);
    const next = [...order].find((id) => isDone(id) && !failing.has(id) && schemaTracker.table(id).live);
    const nowMs = sourceClock.now();
    if (next === undefined || nowMs === undefined) continue;
    order.delete(next);
    order.add(next);
    const { source, live, rebuild } = schemaTracker.table(next);
    if (!source || !live || rebuild) continue;
    const sinceMs = (known.get(next) ?? beganMs ?? nowMs) - OVERLAP_MS;
    try {
      const poll = { ...input, modifiedSince, schemaTracker, reader: asking, sinceMs };
      await pollForChanges(poll, source, tableCache(cache, live));
      known.set(next, nowMs);
    } catch (error) {
      reader.log.debug({ error, tableId: next }, "looking for modified records failed");
    }
  }
}
