/**
 * Finds what clients have written where nothing says which records that was: a CSV sync, or a write whose answer was not
 * understood. Every table is asked for what was modified since.
 *
 * C1. It is in SQL within seconds, whatever the base does meanwhile: a sweep that takes long, a rest for its budget, a
 *     budget that is spent. The calls are counted as the clients' own, whose work it finishes, and wait in line with
 *     those of clients.
 * Deletes are not found: the feed of live mode tells of them, or the next sweep finds them.
 */

import { linkedAbort, wait } from "../../async";
import type { Context } from "../../context";
import { settleCatchUp } from "../../control/jobs";
import { asBasetideError, nextStep } from "../../errors";
import type { RateLimiter } from "../../limiter";
import { agoMs } from "../../postgres";
import { failurePauseMs } from "../pacing";
import { tableCache } from "../state";
import { pollForChanges } from "./find-modified";
import type { Reader } from "./reader";
import { SchemaTracker } from "./schema-tracker";
import { isWholeBases, type SyncInput, typeSettingsOf } from "./sync-base";

/** The write may have been made so long before it was asked to be found, and clocks be apart, ms. */
const OVERLAP_MS = 60_000;
/** The longest that one request waits in line with clients, ms. */
const DEADLINE_MS = 30_000;
/** Calls of Basetide's own take turns with those of clients. */
const CALLER = "catch-up";

export interface CatchUpInput extends Omit<SyncInput, "isForced"> {
  ctx: Pick<Context, "db" | "log">;
  /** The platform's filter; without one the next sweep has to find everything. */
  modifiedSince: ((sinceMs: number) => string) | undefined;
}

/** Catches up whenever it is asked for, one time after the other, until it is ended. */
export class CatchUps implements AsyncDisposable {
  #inputOf: () => Promise<CatchUpInput | null>;
  #stop: ReturnType<typeof linkedAbort>;
  #wanted: Date | null = null;
  #done = 0;
  #running: Promise<void> | undefined;

  /** @param inputOf the base as it is then; null while a first sync is under way, which is to end before */
  constructor(inputOf: () => Promise<CatchUpInput | null>, stop: AbortSignal) {
    this.#inputOf = inputOf;
    this.#stop = linkedAbort(stop);
  }

  /** Somebody wants it, as of then. Asking for the same once more asks for nothing. */
  request(at: Date | null): void {
    if (!at || at.getTime() <= this.#done) return;
    this.#wanted = at;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** What is under way is completed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
    this.#stop[Symbol.dispose]();
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#wanted; ) {
      const at = this.#wanted;
      const input = await this.#inputOf().catch(() => null);
      // Whoever asks once a second asks again.
      if (!input) return;
      const { ctx, base } = input;
      try {
        await catchUp(input, at);
      } catch (caught) {
        const error = asBasetideError(caught);
        if (this.#stop.signal.aborted) return;
        ctx.log.warn({ error }, "what a client wrote is not found yet");
        const isTransient = nextStep[error.code] === "retry" || nextStep[error.code] === "wait";
        if (isTransient) {
          await wait(failurePauseMs(++failures, error), this.#stop.signal).catch(() => {});
          continue;
        }
      }
      this.#done = at.getTime();
      if (this.#wanted === at) this.#wanted = null;
      await settleCatchUp(ctx.db, base.id, at).catch((error: unknown) => {
        ctx.log.debug({ error }, "catch-up not settled");
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
  // No look at the schema that is due: the sync makes that.
  const schemaPollMs = Number.POSITIVE_INFINITY;
  const schemaTracker = await SchemaTracker.open({
    ...input,
    reader,
    settings,
    schemaPollMs,
    signal: reader.stop,
  });
  // Its answer tells the source's time.
  if (cache.sourceClock.now() === undefined) await schemaTracker.refresh();
  const sinceMs = cache.sourceClock.now()! - agoMs(base, at) - OVERLAP_MS;
  const looking = { ...input, schemaTracker, reader, modifiedSince, sinceMs };
  const found = await Promise.all(
    schemaTracker.tables.map(async ({ id }) => {
      const { source, live, rebuild } = schemaTracker.table(id);
      // One that is being built is read whole.
      if (!source || !live || rebuild) return { inserted: 0, updated: 0 };
      try {
        return await pollForChanges(looking, source, tableCache(cache, live));
      } catch (caught) {
        const error = asBasetideError(caught);
        if (isWholeBases(error) || nextStep[error.code] !== "check_schema") throw error;
        return { inserted: 0, updated: 0 };
      }
    }),
  );
  const [inserted, updated] = [sum(found, "inserted"), sum(found, "updated")];
  ctx.log.info({ inserted, updated, requests: reader.counts.requests }, "caught up with what a client wrote");
}

/** The ledger, for calls that finish a client's work: in line with clients, counted as theirs. */
function asClient(limiter: RateLimiter): RateLimiter {
  return {
    ...limiter,
    acquireSync: (key, _share, signal, { connections } = {}) =>
      limiter.acquireClient(key, {
        deadlineMs: DEADLINE_MS,
        signal,
        caller: CALLER,
        isOwnKey: true,
        connections,
      }),
  };
}

function sum<Key extends string>(counts: Record<Key, number>[], key: Key): number {
  return counts.reduce((total, one) => total + one[key], 0);
}
