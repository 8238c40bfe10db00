/**
 * Sends a sync's requests to the source: within the quota, with a read version, and with retries of transient
 * failures.
 */

import { jittered, wait } from "../../async";
import { nextMonth } from "../../control/budgets";
import { asBasetideError, BasetideError, isBasetideError, nextStep } from "../../errors";
import type { HeldConnection } from "../../http/connections";
import type { RateLimiter } from "../../limiter";
import type { Logger } from "../../log";
import { isStale, limitsOfKey, type RecordPage, type SourceConnection, type SourceTable } from "../../source";
import { span } from "../../trace";
import type { ReadVersionSource } from "../state";

/** How often a request that failed transiently is retried, and the bounds of the pauses between attempts. */
const MAX_ATTEMPTS = 5;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 15_000;

/** A list with more pages than any table can have does not end. */
const MAX_PAGES = 50_000;
/** Pages that may begin with a record that an earlier page began with. */
const MAX_REPEATED_PAGES = 10;

/** The purpose of a request, for counting calls. */
export type AskKind = "payloads" | "records" | "sweep" | "schema" | "freshness" | "hooks";

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
  onFirstRequest: () => void;
  /** The default purpose of its requests; "sweep" if absent. */
  kind?: AskKind;
  /** Called for every request that is sent, including retries. */
  onRequest?: ((kind: AskKind) => void) | undefined;
  /** Called for every answer that is not a failure. */
  onAnswer?: (() => void) | undefined;
  /** Returns whether a transient failure may be retried; always true if absent. */
  mayTryAgain?: (() => boolean) | undefined;
  /** Called with the number of read images that lost to a later one. */
  onLost?: ((images: number) => void) | undefined;
}

/**
 * Sends one request to the source when the quota allows it.
 *
 * Transient failures are retried with backoff. After a 429 the base is blocked for all its requests; a spent monthly
 * limit is recorded.
 *
 * @throws BasetideError the source's last error, or `sync_stopped`
 */
export async function ask<T>(
  reader: Reader,
  call: (signal: AbortSignal, source: SourceConnection) => Promise<T>,
  kind: AskKind = reader.kind ?? "sweep",
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let isGranted = false;
    try {
      const { connection } = reader;
      using held = await waitForQuota(reader);
      isGranted = true;
      reader.onRequest?.(kind);
      const source = held ? connection.over(held) : connection;
      const answer = await span("source", { "basetide.kind": kind }, () => call(reader.kill, source));
      reader.onAnswer?.();
      return answer;
    } catch (caught) {
      const error = asBasetideError(caught);
      // If no connection can be opened, the source has failed. Other errors before a grant come from the quota.
      if (!isGranted && error.code !== "source_unavailable") throw caught;
      const step = nextStep[error.code];
      if (error.code === "source_billing_limit") throw await capSpent(reader, error);
      if (step === "wait") {
        const { quotaKey } = reader;
        await reader.limiter.block(quotaKey, limitsOfKey(quotaKey).penaltyMs, "rate_limited");
      } else if (step !== "retry" || attempt === MAX_ATTEMPTS || reader.mayTryAgain?.() === false) {
        throw error;
      } else {
        reader.log.debug({ error, attempt }, "source request failed, trying again");
        // The connection had been closed before the request was sent, so there is no reason to wait.
        await wait(isStale(error) ? 0 : backoffMs(attempt, error), reader.stop);
      }
    }
  }
}

/** A page, and a read version that was taken before it was requested. */
export interface VersionedPage {
  page: RecordPage;
  readVersion: number;
}

export interface ListOptions {
  /** A formula of the platform: only records that match. */
  filter?: string;
  /** Called just before the first page is requested, for each attempt. */
  onAsk?: () => void;
}

/**
 * Reads all pages of a table with one iterator of the source. The next page is requested while the caller processes
 * the current one.
 *
 * @throws BasetideError `source_iterator_lost` when the source lost the iterator or returned a page twice (start
 *   over), `source_bad_answer` when the list does not end
 */
export async function* readTable(
  reader: Reader,
  table: SourceTable,
  options: ListOptions = {},
): AsyncGenerator<VersionedPage, void, void> {
  const offsets = new Set<string>();
  const firstIds = new Set<string>();
  let repeats = 0;
  let next: Promise<VersionedPage> | undefined = readPage(reader, table, undefined, options);
  while (next) {
    const current: VersionedPage = await next;
    const { page } = current;
    next = undefined;
    if (page.size > 0 && firstIds.size === firstIds.add(page.id(0)).size) repeats++;
    if (page.offset !== undefined) {
      if (offsets.has(page.offset) || offsets.size > MAX_PAGES || repeats > MAX_REPEATED_PAGES) {
        throw new BasetideError(
          "source_bad_answer",
          `The list of table ${table.id} does not come to an end.`,
        );
      }
      offsets.add(page.offset);
      next = readPage(reader, table, page.offset, options);
      // A caller that stops early must not leave an unhandled rejection behind.
      next.catch(() => {});
    }
    yield current;
  }
  // A page was returned in place of another one, whose records would appear to be gone.
  if (repeats > 0) {
    throw new BasetideError("source_iterator_lost", `The list of table ${table.id} gave a page twice.`);
  }
}

/**
 * Returns pages of those of these records (1 to 100) that the table has.
 *
 * @throws BasetideError `source_bad_answer` when the list does not end
 */
export async function listByIds(
  reader: Reader,
  table: SourceTable,
  ids: readonly string[],
  kind?: AskKind,
): Promise<RecordPage[]> {
  const { sourceBaseId } = reader;
  const pages: RecordPage[] = [];
  let offset: string | undefined;
  do {
    const asked = { offset };
    const page = await ask(
      reader,
      (signal, source) => source.listByIds(sourceBaseId, table, ids, asked, signal),
      kind,
    );
    pages.push(page);
    if (page.offset !== undefined && pages.length > ids.length) {
      throw new BasetideError("source_bad_answer", `The list of table ${table.id} does not come to an end.`);
    }
    offset = page.offset;
  } while (offset !== undefined);
  return pages;
}

async function readPage(
  reader: Reader,
  table: SourceTable,
  offset: string | undefined,
  { filter, onAsk }: ListOptions,
): Promise<VersionedPage> {
  const readVersion = await reader.readVersions.current();
  const page = await ask(reader, (signal, source) => {
    if (offset === undefined) onAsk?.();
    return source.listPage(reader.sourceBaseId, table, { offset, filter }, signal);
  });
  return { page, readVersion };
}

/** Records that the month's calls are spent. @returns the error, with the date until which syncing rests */
async function capSpent(reader: Reader, error: BasetideError): Promise<BasetideError> {
  const now = new Date();
  const until = nextMonth(now);
  await reader.limiter.block(reader.quotaKey, until.getTime() - now.getTime(), "billing_limit");
  const rest = `Syncing rests until ${until.toISOString().slice(0, 10)} (UTC), with a try every hour.`;
  return new BasetideError(error.code, `${error.message} ${rest}`, { cause: error, details: error.details });
}

/** @returns the connection that the request is sent on, if the platform keeps connections */
async function waitForQuota(reader: Reader): Promise<HeldConnection | undefined> {
  const from = performance.now();
  const { connections } = reader.connection;
  const held = await reader.limiter.acquireSync(reader.quotaKey, reader.share(), reader.stop, {
    connections,
  });
  reader.counts.waitMs += performance.now() - from;
  reader.counts.requests++;
  if (reader.counts.requests === 1) reader.onFirstRequest();
  return held;
}

/**
 * Returns the longer of the source's retry-after time and our own backoff, with jitter so that bases do not retry
 * together.
 */
function backoffMs(attempt: number, error: BasetideError): number {
  return Math.max(
    jittered(attempt, FIRST_BACKOFF_MS, MAX_BACKOFF_MS),
    Number(error.details.retryAfterMs ?? 0),
  );
}

/**
 * Runs `work` again from the start when the source's iterator is lost.
 *
 * @param attempts number of attempts in all
 */
export async function restarting<T>(attempts: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isBasetideError(error) || nextStep[error.code] !== "restart_table" || attempt === attempts)
        throw error;
    }
  }
}
