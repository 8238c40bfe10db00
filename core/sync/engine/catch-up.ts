/**
 * Finds records that clients wrote when it is unknown which ones: after a CSV sync, or a write whose answer was not
 * understood. Asks every table for the records that were modified since.
 *
 * C1. The write is in SQL within seconds, whatever the base does meanwhile: a long sweep, a rest because of its
 * budget, a spent budget. The calls count as the clients' own, whose work they finish, and wait in the clients' queue.
 * Deletes are not found: the feed of live mode reports them, or the next sweep finds them.
 */

import { linkedAbort, wait } from "../../async";
import type { Context } from "../../context";
import { asBasetideError, nextStep } from "../../errors";
import type { RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import type { Host } from "../host";
import { failurePauseMs } from "../pacing";
import { tableCache } from "../state";
import { pollForChanges } from "./find-modified";
import type { Reader } from "./reader";
import { SchemaTracker } from "./schema-tracker";
import { isWholeBases, type SyncInput, typeSettingsOf } from "./sync-base";

/** The write may have been sent this long before the catch-up was requested; includes clock differences, ms. */
const OVERLAP_MS = 60_000;
/** The longest that one request waits in the clients' queue, ms. */
const DEADLINE_MS = 30_000;
/** Basetide's own calls share the queue fairly with those of clients. */
const CALLER = "catch-up";

export interface CatchUpInput extends Omit<SyncInput, "isForced"> {
  ctx: Pick<Context, "log"> & { host: Pick<Host, "save"> };
  /** The platform's filter; without one, only the next sweep finds the changes. */
  modifiedSince: ((sinceMs: number) => string) | undefined;
}

/** Runs requested catch-ups, one at a time, until it is disposed of. */
export class CatchUps implements AsyncDisposable {
  #inputOf: () => Promise<CatchUpInput | null>;
  #stop: ReturnType<typeof linkedAbort>;
  #wanted: Date | null = null;
  #done = 0;
  #running: Promise<void> | undefined;

  /** @param inputOf returns the current base; null while a first sync is running, which must end first */
  constructor(inputOf: () => Promise<CatchUpInput | null>, stop: AbortSignal) {
    this.#inputOf = inputOf;
    this.#stop = linkedAbort(stop);
  }

  /** Requests a catch-up for writes up to `at`. Repeating the same request has no effect. */
  request(at: Date | null): void {
    if (!at || at.getTime() <= this.#done) return;
    this.#wanted = at;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Waits for a running catch-up to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
    this.#stop[Symbol.dispose]();
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#wanted; ) {
      const at = this.#wanted;
      const input = await this.#inputOf().catch(() => null);
      // The request is repeated every second.
      if (!input) return;
      const { ctx, base } = input;
      try {
        await catchUp(input, at);
      } catch (caught) {
        const error = asBasetideError(caught);
        if (this.#stop.signal.aborted) return;
        ctx.log.warn({ error }, "records of a client's write not found yet");
        const isTransient = nextStep[error.code] === "retry" || nextStep[error.code] === "wait";
        if (isTransient) {
          await wait(failurePauseMs(++failures, error), this.#stop.signal).catch(() => {});
          continue;
        }
      }
      this.#done = at.getTime();
      if (this.#wanted === at) this.#wanted = null;
      await ctx.host.save(base.id, { caughtUpAt: at }).catch((error: unknown) => {
        ctx.log.debug({ error }, "saving the result of a catch-up failed");
      });
    }
  }
}

async function catchUp({ modifiedSince, ...input }: CatchUpInput, at: Date): Promise<void> {
  const { base, cache, ctx } = input;
  if (!modifiedSince) return;
  const reader: Reader = {
    ...input.reader,
    limiter: asClient(input.reader.limiter),
    onRequest: undefined,
    counts: { requests: 0, waitMs: 0 },
    onFirstRequest: () => {},
  };
  const settings = typeSettingsOf(input);
  // No schema checks here: the sync runs those.
  const schemaPollMs = Number.POSITIVE_INFINITY;
  const schemaTracker = await SchemaTracker.open({
    ...input,
    reader,
    settings,
    schemaPollMs,
    signal: reader.stop,
  });
  // The answer tells the source's time.
  if (cache.sourceClock.now() === undefined) await schemaTracker.refresh();
  const sinceMs = cache.sourceClock.now()! - agoMs(base, at) - OVERLAP_MS;
  const poll = { ...input, schemaTracker, reader, modifiedSince, sinceMs };
  const found = await Promise.all(
    schemaTracker.tables.map(async ({ id }) => {
      const { source, live, rebuild } = schemaTracker.table(id);
      // A table that is being built is read completely.
      if (!source || !live || rebuild) return { inserted: 0, updated: 0 };
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

/** Wraps the limiter for calls that finish a client's work: they wait with those of clients and count as theirs. */
function asClient(limiter: RateLimiter): RateLimiter {
  return {
    ...limiter,
    acquireSync: (key, _share, signal, { connections } = {}) =>
      limiter.acquireClient(key, {
        deadlineMs: DEADLINE_MS,
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
