/** How a sync asks the source: with retries of transient failures, and lists of whole tables with read versions. */

import { jittered, wait } from "../../async";
import { BasetideError, isBasetideError, nextStep } from "../../errors";
import { MeteredSource, type RateLimiter } from "../../limiter";
import type { Logger } from "../../log";
import {
  isStale,
  nextMonth,
  type RememberedPage,
  type SourceConnection,
  type SourceTable,
} from "../../source";
import { MANY_TRIES, MOST_PATIENCE_MS, TRIES } from "../pacing";
import type { ReadVersionSource, VersionedPage } from "../state";

/** The first pause of a request: three failures in a row keep others waiting for less than MOST_PATIENCE_MS. */
const FIRST_BACKOFF_MS = 500;
/** A list with more pages than any table can have does not end. */
const MAX_PAGES = 50_000;

/** The purpose of a request, for counting calls. */
export type AskKind = "payloads" | "records" | "sweep" | "schema" | "freshness" | "webhooks";

export interface Reader {
  connection: SourceConnection;
  sourceBaseId: string;
  limiter: RateLimiter;
  quotaKey: string;
  /** Requests a second that a sync of this base may currently make. */
  share: () => number;
  readVersions: ReadVersionSource;
  log: Logger;
  /** Aborts with `sync_stopped` when no further request must be made; the current one is finished. */
  stop: AbortSignal;
  /** Aborts the current request, too. */
  kill: AbortSignal;
  counts: { requests: number; waitMs: number };
  /** Called once, when the first request may be sent. */
  onFirstRequest?: (() => void) | undefined;
  /** The default purpose of its requests; "sweep" if absent. */
  kind?: AskKind;
  /** Called for every request that is sent, including retries. */
  onRequest?: ((kind: AskKind) => void) | undefined;
  /** Called for every answer that is not a failure. */
  onAnswer?: (() => void) | undefined;
  /** Called for every answer that is a failure. */
  onFailure?: ((error: BasetideError) => void) | undefined;
  /** Aborts a write of rows that is running. */
  writeSignal?: AbortSignal | undefined;
  /** Called before rows are written, and when that is over. */
  onWrite?: ((isOver: boolean) => void) | undefined;
  /** Returns whether a transient failure may be retried; always true if absent. */
  mayTryAgain?: (() => boolean) | undefined;
  /** Called with the number of read images that lost to a later one. */
  onLost?: ((images: number) => void) | undefined;
}

/**
 * Returns the source as this reader asks it.
 *
 * Transient failures are retried with backoff; after a 429, the request waits until the base's pause is over. A spent
 * monthly limit is recorded. Errors are the source's last error, or `sync_stopped`.
 */
export function metered(reader: Reader, kind: AskKind = reader.kind ?? "sweep"): MeteredSource {
  const { connection, sourceBaseId, limiter, quotaKey, share, stop, kill, counts } = reader;
  return new MeteredSource({
    connection,
    sourceBaseId,
    limiter,
    quotaKey,
    queue: { priority: "sync", share, signal: stop },
    signal: kill,
    kind,
    isOneOfMany: kind === "sweep",
    retry: (error, attempt) => beforeRetry(reader, error, attempt),
    onSend(waitedMs) {
      counts.waitMs += waitedMs;
      counts.requests++;
      if (counts.requests === 1) reader.onFirstRequest?.();
      reader.onRequest?.(kind);
    },
    onAnswer: () => reader.onAnswer?.(),
  });
}

/** Resolves when the request may be sent again; throws if it must not. */
async function beforeRetry(reader: Reader, error: BasetideError, attempt: number): Promise<void> {
  reader.onFailure?.(error);
  if (error.code === "source_billing_limit") throw await capSpent(reader, error);
  // The next permit begins after the pause.
  if (error.code === "source_rate_limited" && attempt < MANY_TRIES) return;
  if (nextStep[error.code] !== "retry" || attempt >= TRIES || reader.mayTryAgain?.() === false) throw error;
  reader.log.debug({ error, attempt }, "request to Airtable failed; retrying");
  // The connection had been closed before the request was sent, so there is no reason to wait.
  await wait(isStale(error) ? 0 : backoffMs(attempt, error), reader.stop);
}

interface ListOptions {
  /** A formula of the platform: only records that match. */
  filter?: string;
  /** Called just before the first page is requested, for each attempt. */
  onAsk?: () => void;
  /** Returns whether the page at this position has been read before. */
  isKnown?: (position: number, digest: number) => boolean;
  /** Returns what is remembered of the page at this position. */
  remembered?: (position: number) => RememberedPage | undefined;
}

/**
 * Reads all pages of a table with one iterator of the source, and requests the next page while the caller processes the
 * current one. A page must not be used once the caller has asked for the next.
 *
 * @throws BasetideError `source_iterator_lost` when the source lost the iterator or returned a page twice (start
 *   over), `source_bad_answer` when the list does not end
 */
export async function* readTable(
  reader: Reader,
  table: SourceTable,
  { filter, onAsk, isKnown, remembered }: ListOptions = {},
): AsyncGenerator<VersionedPage, void, void> {
  const source = metered(reader);
  const ask = (offset: string | undefined, position: number) => {
    const readVersion = reader.readVersions.current();
    const page = readVersion.then(() =>
      source.send((connection, signal) => {
        if (offset === undefined) onAsk?.();
        const known = isKnown && ((digest: number) => isKnown(position, digest));
        const asked = { offset, filter, isKnown: known, before: remembered?.(position) };
        return connection.listPage(reader.sourceBaseId, table, asked, signal);
      }),
    );
    // A caller that stops early must not leave an unhandled rejection behind.
    page.catch(() => {});
    return { page, readVersion };
  };
  const firstIds = new Set<string>();
  let repeats = 0;
  /** The offset behind 1, 2, 4, 8, ... pages: a list that goes in circles comes to it again. */
  let milestone: string | undefined;
  let position = 0;
  for (let requested: ReturnType<typeof ask> | undefined = ask(undefined, 0); requested; ) {
    const page = await requested.page;
    const readVersion = await requested.readVersion;
    requested = undefined;
    const { firstId, offset } = page;
    if (firstId !== undefined && firstIds.size === firstIds.add(firstId).size) repeats++;
    if (offset !== undefined) {
      position++;
      if (offset === milestone || position > MAX_PAGES || repeats > MANY_TRIES)
        throw new BasetideError("source_bad_answer", `Airtable's list of table ${table.id} does not end.`);
      // Source: R. P. Brent, An improved Monte Carlo factorization algorithm (1980).
      if (Number.isInteger(Math.log2(position))) milestone = offset;
      requested = ask(offset, position);
    }
    yield { page, readVersion };
    // If a thousand bases kept their pages until the next ones arrive, these would take 30 MB.
    page.discard?.();
  }
  // A page was returned in place of another one, whose records would appear to be gone.
  if (repeats > 0)
    throw new BasetideError(
      "source_iterator_lost",
      `Airtable's list of table ${table.id} returned the same page twice.`,
    );
}

/** Records that the month's calls are spent. @returns the error, with the date until which syncing rests */
async function capSpent(reader: Reader, error: BasetideError): Promise<BasetideError> {
  const now = new Date();
  const until = nextMonth(now);
  await reader.limiter.block(reader.quotaKey, until.getTime() - now.getTime(), "billing_limit");
  const rest = `Syncing is paused until ${until.toISOString().slice(0, 10)} (UTC), with an attempt every hour.`;
  return new BasetideError(error.code, `${error.message} ${rest}`, { cause: error, details: error.details });
}

/**
 * Returns the longer of the source's retry-after time and our own backoff, with jitter so that bases do not retry
 * together.
 */
function backoffMs(attempt: number, error: BasetideError): number {
  return Math.max(
    jittered(attempt, FIRST_BACKOFF_MS, MOST_PATIENCE_MS),
    Number(error.details.retryAfterMs ?? 0),
  );
}

/**
 * Runs `work` again from the start when the source's iterator is lost.
 */
export async function restarting<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isBasetideError(error) || nextStep[error.code] !== "restart_table" || attempt === TRIES)
        throw error;
    }
  }
}
