/**
 * Fresh URLs of attachments: where the source has one now, asked for when somebody opens it, and kept in this process
 * until shortly before it ends.
 *
 * I4. Every request to the source is booked as a client's, and counts in the base's budget.
 */

import { withTimeout } from "../async";
import type { Context } from "../context";
import { type LinkedBase, openApiKey } from "../control/bases";
import { quotaKeyOf } from "../control/budgets";
import { BasetideError, isBasetideError } from "../errors";
import type { RateLimiter } from "../limiter";
import type { AttachmentRef } from "../replica";
import {
  attachmentsIn,
  limitsOfKey,
  type Platform,
  platformById,
  retryIfStale,
  type SourceConnection,
  type SourceRecord,
} from "../source";
import { RecordQueue, type RecordSource } from "./record-queue";

/** How long a URL surely lives, ms: "about two hours" after it was given, says the source. */
const URL_LIFE_MS = 100 * 60_000;
/** It is given to clients only while it has this long to live, ms: a download begins at once, a page stays open. */
const LEAST_LIFE_MS = 30 * 60_000;
/** An attachment that was not there is not looked for again within this, ms. */
const GONE_MS = 60_000;
/** Records kept, and bases with a line: the oldest go first. */
const MAX_RECORDS = 20_000;
const MAX_LINES = 1000;

export interface FreshUrl {
  url: string;
  /** For so long it opens the attachment, ms. */
  lastsMs: number;
}

export interface FreshContext extends Pick<Context, "config" | "db" | "secrets"> {
  limiter: RateLimiter;
  platforms: Platform[];
}

/** What a record had when it was read. */
interface Known {
  readAt: number;
  /** By field and attachment. */
  urls: Map<string, string>;
  /** What was asked for and not there. */
  gone: Set<string>;
}

export class FreshUrls {
  readonly #ctx: FreshContext;
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #lines = new Map<string, RecordQueue>();

  /** @param now ms on any clock that only goes forward */
  constructor(ctx: FreshContext, now: () => number = () => performance.now()) {
    this.#ctx = ctx;
    this.#now = now;
  }

  /**
   * Where the source has the attachment.
   *
   * @returns null when it is gone: the attachment, its record, or the field
   * @throws BasetideError `rate_limited`, `source_…`, `quota_timeout`, `control_unavailable`, `secret_unreadable`
   */
  async find(base: LinkedBase, place: AttachmentRef): Promise<FreshUrl | null> {
    const key = `${base.id}/${place.tableId}/${place.recordId}`;
    const name = nameOf(place.fieldId, place.attachmentId);
    const known = this.#known.get(key);
    const answer = known && this.#answer(known, name);
    if (answer !== undefined) return answer;
    // A line behind a source that hangs is no reason to keep a client for longer.
    const timeoutMs = this.#ctx.config.upstreamTimeoutMs;
    const reading = this.#queueOf(base).read(place.tableId, place.recordId);
    const fresh = this.#cache(key, await withTimeout(timeoutMs, "source_timeout", reading));
    if (!fresh.urls.has(name)) fresh.gone.add(name);
    return this.#answer(fresh, name) ?? null;
  }

  /** Undefined: nobody knows. */
  #answer({ readAt, urls, gone }: Known, name: string): FreshUrl | null | undefined {
    const ageMs = this.#now() - readAt;
    const url = urls.get(name);
    if (url !== undefined && ageMs <= URL_LIFE_MS - LEAST_LIFE_MS)
      return { url, lastsMs: URL_LIFE_MS - ageMs };
    return url === undefined && gone.has(name) && ageMs < GONE_MS ? null : undefined;
  }

  #cache(key: string, record: SourceRecord | null): Known {
    const known: Known = { readAt: this.#now(), urls: urlsOf(record), gone: new Set() };
    this.#known.delete(key);
    this.#known.set(key, known);
    if (this.#known.size > MAX_RECORDS) this.#known.delete(this.#known.keys().next().value!);
    return known;
  }

  #queueOf(base: LinkedBase): RecordQueue {
    const known = this.#lines.get(base.id);
    if (known) return known;
    if (this.#lines.size >= MAX_LINES) {
      for (const [id, queue] of this.#lines) if (queue.isIdle) this.#lines.delete(id);
    }
    const queue = new RecordQueue(recordSource(this.#ctx, base));
    this.#lines.set(base.id, queue);
    return queue;
  }
}

/** The base's records, by its own key as it is at that moment, out of the clients' quota. */
function recordSource(ctx: FreshContext, base: LinkedBase): RecordSource {
  const { limiter, config } = ctx;
  const { sourceBaseId } = base;
  const quotaKey = quotaKeyOf(base);

  async function ask<T>(call: (source: SourceConnection, signal: AbortSignal) => Promise<T>): Promise<T> {
    const source = platformById(ctx.platforms, base.platform).connect(await openApiKey(ctx, base));
    const signal = AbortSignal.timeout(2 * config.upstreamTimeoutMs);
    const { connections } = source;
    const client = { deadlineMs: config.upstreamTimeoutMs, signal, connections, isOwnKey: true };
    try {
      return await retryIfStale(async () => {
        using held = await limiter.acquireClient(quotaKey, client);
        return await call(held ? source.over(held) : source, signal);
      });
    } catch (error) {
      if (isBasetideError(error, "source_rate_limited"))
        await limiter.block(quotaKey, limitsOfKey(quotaKey).penaltyMs, "rate_limited");
      throw error;
    }
  }

  return {
    async listed(tableId, recordIds) {
      const table = { id: tableId, name: tableId, primaryFieldId: "", fields: [] };
      const records: SourceRecord[] = [];
      for (let offset: string | undefined; ; ) {
        const page = await ask((source, signal) =>
          source.listByIds(sourceBaseId, table, recordIds, { offset }, signal),
        );
        for (let index = 0; index < page.size; index++) records.push(page.record(index));
        if (page.offset === undefined || page.offset === offset) return records;
        offset = page.offset;
      }
    },
    record: (tableId, recordId) =>
      ask((source, signal) => source.getRecord(sourceBaseId, tableId, recordId, signal)),
  };
}

/** Where a record's attachments are. Nothing but a web address is one: a client is sent there. */
function urlsOf(record: SourceRecord | null): Map<string, string> {
  const urls = new Map<string, string>();
  for (const [fieldId, cell] of Object.entries(record?.fields ?? {})) {
    for (const { id, url } of attachmentsOf(cell)) {
      const parsed = URL.parse(url);
      if (parsed && /^https?:$/.test(parsed.protocol)) urls.set(nameOf(fieldId, id), parsed.href);
    }
  }
  return urls;
}

function attachmentsOf(cell: unknown) {
  try {
    return [...attachmentsIn(cell)];
  } catch (cause) {
    throw new BasetideError("source_bad_answer", "A cell nests too deeply", { cause });
  }
}

function nameOf(fieldId: string, attachmentId: string): string {
  return `${fieldId}/${attachmentId}`;
}
