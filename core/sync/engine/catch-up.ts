/**
 * Finds records that clients wrote when it is unknown which ones: after a CSV sync, or a write whose answer was not
 * understood. Asks every table for the records that were modified since.
 *
 * C1. The write is in SQL within seconds, whatever the base does meanwhile: a long sweep, a rest because of its
 * budget, a spent budget. The calls count as the clients' own, whose work they finish, and wait in the clients' queue.
 * Deletes are not found: the feed of live mode reports them, or the next sweep finds them.
 */

import type { Context } from "../../context";
import { asBasetideError, nextStep } from "../../errors";
import type { ClientCall, RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import type { Host } from "../host";
import { isWholeBases, type WorkKind } from "../pacing";
import { tableCache } from "../state";
import { CLOCKS_OVERLAP_MS, pollForChanges } from "./find-modified";
import type { Reader } from "./reader";
import { SchemaTracker } from "./schema-tracker";
import type { SyncInput } from "./sync-base";

/** Basetide's own calls share the queue fairly with those of clients. */
const CALLER = "catch-up";

export interface CatchUpInput extends Omit<SyncInput, "isForced" | "modifiedSince"> {
  ctx: Pick<Context, "config" | "log"> & { host: Pick<Host, "save"> };
  /** The platform's filter; without one, only the next sweep finds the changes. */
  modifiedSince: ((sinceMs: number) => string) | undefined;
}

/**
 * The catch-up that was requested last. It is given up if it cannot succeed: the next sweep finds the records.
 *
 * @param requestedAt returns for writes up to when one is requested; null: none
 */
export function catchingUp(requestedAt: () => Date | null, inputOf: () => Promise<CatchUpInput>): WorkKind {
  let doneAt = 0;
  async function run(at: Date): Promise<void> {
    const input = await inputOf();
    const { ctx, base, reader } = input;
    try {
      await catchUp(input, at);
    } catch (caught) {
      const error = asBasetideError(caught);
      ctx.log.warn({ error }, "records of a client's write not found yet");
      const step = nextStep[error.code];
      if (step === "retry" || step === "wait" || reader.stop.aborted) throw error;
    }
    doneAt = at.getTime();
    await ctx.host.save(base.id, { caughtUpAt: at }).catch((error: unknown) => {
      ctx.log.debug({ error }, "saving the result of a catch-up failed");
    });
  }
  return {
    most: 1,
    items() {
      const at = requestedAt();
      return at && at.getTime() > doneAt ? [{ id: "catch-up", run: () => run(at) }] : [];
    },
  };
}

async function catchUp({ modifiedSince, ...input }: CatchUpInput, at: Date): Promise<void> {
  const { base, cache, ctx } = input;
  if (!modifiedSince) return;
  const reader: Reader = {
    ...input.reader,
    limiter: asClient(input.reader.limiter, { deadlineMs: ctx.config.upstreamTimeoutMs }),
    onRequest: undefined,
    counts: { requests: 0, waitMs: 0 },
  };
  // No schema checks here: the sync runs those.
  const schemaPollMs = Number.POSITIVE_INFINITY;
  const schemaTracker = await SchemaTracker.open({ ...input, reader, schemaPollMs });
  // The answer tells the source's time.
  if (cache.sourceClock.now() === undefined) await schemaTracker.refresh();
  // The write may have been sent this long before the catch-up was requested.
  const sinceMs = cache.sourceClock.now()! - agoMs(base, at) - CLOCKS_OVERLAP_MS;
  const poll = { ...input, schemaTracker, reader, modifiedSince, sinceMs };
  const found = await Promise.all(
    schemaTracker.tables.map(async ({ id }) => {
      const { source, live, rebuild } = schemaTracker.table(id);
      // A table that is being built, or fails, is read completely.
      if (!source || !live || rebuild || cache.failing.has(id)) return { inserted: 0, updated: 0 };
      try {
        return await pollForChanges(poll, source, tableCache(cache, live));
      } catch (caught) {
        const error = asBasetideError(caught);
        if (isWholeBases(error) || nextStep[error.code] !== "check_schema") throw error;
        return { inserted: 0, updated: 0 };
      }
    }),
  );
  const [inserted, updated] = [sum(found, "inserted"), sum(found, "updated")];
  ctx.log.info({ inserted, updated, requests: reader.counts.requests }, "caught up with a client's write");
}

/** Wraps the limiter for calls that wait with those of clients. @param call whether they also count as theirs */
export function asClient(
  limiter: RateLimiter,
  call: Pick<ClientCall, "deadlineMs" | "isSyncs">,
): RateLimiter {
  return {
    ...limiter,
    acquireSync: (key, _share, signal, { connections } = {}) =>
      limiter.acquireClient(key, {
        ...call,
        signal,
        caller: CALLER,
        isOwnKey: true,
        shownAs: "own",
        connections,
      }),
  };
}

function sum<Key extends string>(counts: Record<Key, number>[], key: Key): number {
  return counts.reduce((total, one) => total + one[key], 0);
}
