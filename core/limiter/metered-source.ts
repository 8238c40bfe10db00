/**
 * Sends one caller's requests for a base to its source, within the rate limit of the base. All requests of core that
 * count in a base's quota are sent here; those that the proxy forwards are sent by `apps/proxy`.
 *
 * I4. Every request uses a permit of its own, and is sent on the connection that comes with it in the same tick. The
 * same holds for a request that is sent again, which `retry` must allow: the source counts it twice.
 *
 * After each 429, the rate limiter pauses all requests of the base for the platform's penalty (`penaltyMs`). The pause
 * is reported exactly once, before the request is sent again or the caller gets the error.
 *
 * `source_forbidden` is passed on, since only the caller knows whether it means a missing permission.
 */
import { wait } from "../async";
import { asBasetideError, BasetideError, isBasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import {
  isStale,
  namedTable,
  type RecordPage,
  type SourceConnection,
  type SourceRecord,
  type SourceTable,
} from "../source";
import { countedSpan, isTraced, span } from "../trace";
import { PATIENCE_MS } from "./control-plane";
import { limitsOfKey } from "./limits";
import type { ClientCall, QuotaKey, RateLimiter } from "./rate-limiter";

interface SyncQueue {
  priority: "sync";
  /** Returns the requests per window that sync may currently use. */
  share: () => number;
  signal: AbortSignal;
}

/** The queue in which requests wait for their permits. */
export type RequestQueue =
  | SyncQueue
  | ({ priority: "client" | "unproven" } & Omit<ClientCall, "connections">);

/**
 * Decides after a failure: resolves when the request may be sent again, or throws.
 *
 * @param attempt 1 after the first failure
 */
export type Retry = (error: BasetideError, attempt: number) => Promise<void>;

export interface MeteredSourceOptions {
  connection: SourceConnection;
  sourceBaseId: string;
  limiter: RateLimiter;
  quotaKey: QuotaKey;
  queue: RequestQueue;
  /** Aborts requests that were sent. */
  signal: AbortSignal;
  /**
   * What follows a failure. Absent: the request is sent once more if its connection was stale; only for requests that
   * read.
   */
  retry?: Retry;
  /** The purpose of the requests, which are traced by it; without one they are not. */
  kind?: string;
  /** One of these is like the other: they are counted in the current span, and have none of their own. */
  isOneOfMany?: boolean;
  /** Called just before each request is sent, with how long it waited for its permit. */
  onSend?: (waitedMs: number) => void;
  /** Called with each result that is not a failure. */
  onAnswer?: (answer: unknown) => void;
}

/** The ids of records to read: at most a page. A function is called once, when the request is about to be sent. */
export type RequestedIds = readonly string[] | (() => readonly string[]);

/** For requests that have an effect: no failure tells whether they had it. */
export const neverRetry: Retry = async (error) => {
  throw error;
};

/** The connection was usually closed before the request was sent, which cannot be verified. */
const retryIfStale: Retry = async (error, attempt) => {
  if (attempt > 1 || !isStale(error)) throw error;
};

/**
 * How long a sync's request waits between two tries while the control plane is unavailable, ms. Otherwise, one late answer
 * would end every sync of the process, and each would begin again: with 10,000 records, that is half a minute of requests.
 */
const CONTROL_PAUSE_MS = 500;

export class MeteredSource {
  readonly #options: MeteredSourceOptions;

  constructor(options: MeteredSourceOptions) {
    this.#options = options;
  }

  /**
   * Sends one request as soon as it has a permit.
   *
   * @param request makes exactly one call, or none, and makes it synchronously
   * @throws BasetideError the source's last error, unless `retry` throws another one; errors of waiting for the
   *   permit as `acquireSync` and `acquireClient` throw them, but for sync, `control_unavailable` only after 10 s
   */
  async send<T>(request: (source: SourceConnection, signal: AbortSignal) => Promise<T>): Promise<T> {
    const { connection, signal, retry = retryIfStale, onSend, onAnswer } = this.#options;
    for (let attempt = 1, from = performance.now(); ; ) {
      let isGranted = false;
      try {
        using held = await this.#acquire();
        isGranted = true;
        onSend?.(performance.now() - from);
        const source = held ? connection.over(held) : connection;
        const answer = await this.#traced(source, signal, request);
        onAnswer?.(answer);
        return answer;
      } catch (caught) {
        if (!isGranted && (await this.#waitForControl(caught, from))) continue;
        // If no connection can be opened, the source has failed. Other errors before a grant come from the limiter.
        if (!isGranted && !isBasetideError(caught, "source_unavailable")) throw caught;
        const error = asBasetideError(caught);
        if (error.code === "source_rate_limited") await this.#pauseBase();
        await retry(error, attempt++);
        from = performance.now();
      }
    }
  }

  /**
   * Returns pages of those of these records that the table has. Sends nothing if `ids` is empty.
   *
   * @throws BasetideError as `send`, and `source_bad_answer` when the list does not end
   */
  async listByIds(table: SourceTable, ids: RequestedIds): Promise<RecordPage[]> {
    const { sourceBaseId } = this.#options;
    const pages: RecordPage[] = [];
    let asked: readonly string[] | undefined;
    let offset: string | undefined;
    do {
      const page = await this.send(async (source, signal) => {
        asked ??= typeof ids === "function" ? ids() : ids;
        return asked.length > 0 ? source.listByIds(sourceBaseId, table, asked, { offset }, signal) : null;
      });
      if (!page) return pages;
      pages.push(page);
      if (page.offset !== undefined && (page.offset === offset || pages.length > asked!.length)) {
        throw new BasetideError("source_bad_answer", `Airtable's list of table ${table.id} does not end.`);
      }
      offset = page.offset;
    } while (offset !== undefined);
    return pages;
  }

  /** The same for a table of which only the id is known. @returns the records */
  async listRecords(tableId: string, ids: RequestedIds): Promise<SourceRecord[]> {
    const pages = await this.listByIds(namedTable(tableId), ids);
    return pages.flatMap((page) => Array.from({ length: page.size }, (_, index) => page.record(index)));
  }

  /** Returns whether the record exists, even if it cannot be read. */
  async hasRecord(tableId: string, recordId: string): Promise<boolean> {
    return (await this.#find(tableId, recordId)) !== null;
  }

  /**
   * Returns the record, null if it no longer exists, or an error if it cannot be read: asking again would not help. The
   * source may also answer "forbidden" for a record that is gone: the key has just listed the table, so it may read it.
   */
  #find(tableId: string, recordId: string): Promise<SourceRecord | BasetideError | null> {
    const { sourceBaseId } = this.#options;
    return this.send(async (source, signal) => {
      try {
        return await source.getRecord(sourceBaseId, tableId, recordId, signal);
      } catch (error) {
        if (isBasetideError(error, "source_forbidden")) return null;
        if (isBasetideError(error, "source_bad_answer") && error.details.isRecord) return error;
        throw error;
      }
    });
  }

  /**
   * Returns the current records, and the ids of those that no longer exist. Others cannot be read.
   *
   * A source sometimes answers "no records" for a table that has them: missing records are requested one by one.
   *
   * @param sourceFor returns which queue the request for the n-th missing record uses (from 0); this one if absent
   */
  async readRecords(
    tableId: string,
    ids: RequestedIds,
    sourceFor: (index: number) => MeteredSource = () => this,
  ): Promise<{ records: SourceRecord[]; gone: string[] }> {
    let asked: readonly string[] = [];
    const listed = await this.listRecords(tableId, () => {
      asked = typeof ids === "function" ? ids() : ids;
      return asked;
    });
    const found = new Map(listed.map((record) => [record.id, record]));
    const gone: string[] = [];
    for (const [index, id] of asked.filter((one) => !found.has(one)).entries()) {
      const record = await sourceFor(index).#find(tableId, id);
      if (record === null) gone.push(id);
      else if (!(record instanceof BasetideError)) found.set(id, record);
    }
    return { records: asked.flatMap((id) => found.get(id) ?? []), gone };
  }

  #acquire(): Promise<HeldConnection | undefined> {
    const { limiter, quotaKey, queue, connection } = this.#options;
    const { connections } = connection;
    if (queue.priority === "sync")
      return limiter.acquireSync(quotaKey, queue.share(), queue.signal, { connections });
    const { priority, ...call } = queue;
    return priority === "client"
      ? limiter.acquireClient(quotaKey, { ...call, connections })
      : limiter.acquireUnproven(quotaKey, { ...call, connections });
  }

  /**
   * Waits a moment if a sync got no permit because the control plane is unavailable.
   *
   * @param from when the request began to wait
   * @returns whether to try again
   */
  async #waitForControl(error: unknown, from: number): Promise<boolean> {
    const { queue } = this.#options;
    if (queue.priority !== "sync" || !isBasetideError(error, "control_unavailable")) return false;
    if (performance.now() - from > PATIENCE_MS) return false;
    // If the sync was stopped, the next try throws the reason.
    await wait(CONTROL_PAUSE_MS, queue.signal).catch(() => {});
    return true;
  }

  #traced<T>(
    source: SourceConnection,
    signal: AbortSignal,
    request: (source: SourceConnection, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { kind, isOneOfMany } = this.#options;
    if (kind === undefined || !isTraced()) return request(source, signal);
    const work = () => request(source, signal);
    return (isOneOfMany ? countedSpan : span)("source", { "basetide.kind": kind }, work);
  }

  /** A 429 to an unproven key says nothing about the base: it may be the limit of the key's owner. */
  async #pauseBase(): Promise<void> {
    const { limiter, quotaKey, queue } = this.#options;
    if (queue.priority === "unproven") return;
    const isOwn = queue.priority === "sync" || queue.isOwnKey === true;
    await limiter.block(quotaKey, limitsOfKey(quotaKey).penaltyMs, "rate_limited", { isOwn });
  }
}
