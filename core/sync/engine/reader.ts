/**
 * How a sync asks the source: within the quota, holding a read version, and over the source's passing failures.
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

/** How often a request that failed in passing is tried again, and for how long it is waited in between. */
const MAX_ATTEMPTS = 5;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 15_000;

/** Lists that go on for longer than any table can be have no end. */
const MAX_PAGES = 50_000;
/** Pages that may begin with a record that an earlier page began with. */
const MAX_REPEATED_PAGES = 10;

/** What a request is for, as calls are counted. */
export type AskKind = "payloads" | "records" | "sweep" | "schema" | "freshness" | "hooks";

export interface Reader {
  connection: SourceConnection;
  sourceBaseId: string;
  limiter: RateLimiter;
  quotaKey: string;
  /** Requests a second that a sync of this base may make, as things are now. */
  share: () => number;
  readVersions: ReadVersionSource;
  log: Logger;
  /** Aborts, with `sync_stopped`, when no further request is to be made; the one in hand is finished. */
  stop: AbortSignal;
  /** Aborts what is in hand, too. */
  kill: AbortSignal;
  counts: { requests: number; waitMs: number };
  /** Called once, when the first request may go out. */
  onFirstRequest: () => void;
  /** What its requests are for, unless they say so themselves; "sweep" where absent. */
  kind?: AskKind;
  /** Told of every request that goes out, tries included. */
  onRequest?: ((kind: AskKind) => void) | undefined;
  /** Told of every answer that is none of a failure. */
  onAnswer?: (() => void) | undefined;
  /** May what failed in passing be tried again? It may where absent. */
  mayTryAgain?: (() => boolean) | undefined;
  /** Told how many images of what was read have lost to a later one. */
  onLost?: ((images: number) => void) | undefined;
}

/**
 * Makes one request to the source, when the quota has room for it.
 *
 * Passing failures are tried again with backoff; after a 429 the base is blocked for everyone, and a spent monthly
 * cap is noted.
 *
 * @throws BasetideError what the source said last, or `sync_stopped`
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
      // A source that no connection can be opened to has failed; else it was the quota, which is not the source's.
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
        // Its connection had been closed before it was asked: there is nothing to wait for.
        await wait(isStale(error) ? 0 : backoffMs(attempt, error), reader.stop);
      }
    }
  }
}

/** A page, and a read version that was taken before it was asked for. */
export interface VersionedPage {
  page: RecordPage;
  readVersion: number;
}

export interface ListOptions {
  /** A formula of the platform: only records that match. */
  filter?: string;
  /** Called just before the first page is asked for, each time that is tried. */
  onAsk?: () => void;
}

/**
 * All pages of a table, in one run of the source's iterator. The next page is on its way while the caller works on
 * this one.
 *
 * @throws BasetideError `source_iterator_lost` when the source lost its place or gave a page twice (start again),
 *   `source_bad_answer` when the list has no end
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
      // Whoever stops listening early must not leave an unhandled rejection behind.
      next.catch(() => {});
    }
    yield current;
  }
  // A page came in another's place, whose records would seem to be gone.
  if (repeats > 0) {
    throw new BasetideError("source_iterator_lost", `The list of table ${table.id} gave a page twice.`);
  }
}

/**
 * Those of these records (1 to 100) that the table has, as pages.
 *
 * @throws BasetideError `source_bad_answer` when the list has no end
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

/** Notes that the month's calls are spent. @returns the error, saying until when and what goes on meanwhile */
async function capSpent(reader: Reader, error: BasetideError): Promise<BasetideError> {
  const now = new Date();
  const until = nextMonth(now);
  await reader.limiter.block(reader.quotaKey, until.getTime() - now.getTime(), "billing_limit");
  const rest = `Syncing rests until ${until.toISOString().slice(0, 10)} (UTC), with a try every hour.`;
  return new BasetideError(error.code, `${error.message} ${rest}`, { cause: error, details: error.details });
}

/** @returns the connection that the request is sent on, where the platform keeps connections */
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

/** The longer of what the source asks for and our own backoff, with jitter so that bases do not come back at once. */
function backoffMs(attempt: number, error: BasetideError): number {
  return Math.max(
    jittered(attempt, FIRST_BACKOFF_MS, MAX_BACKOFF_MS),
    Number(error.details.retryAfterMs ?? 0),
  );
}

/**
 * Runs `work` again from the start when the source loses its place in a list.
 *
 * @param attempts how often in all
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
