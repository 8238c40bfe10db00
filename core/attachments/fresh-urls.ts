/**
 * Finds an attachment's current URL at the source. URLs are requested when an attachment is opened, and cached in this
 * process until shortly before they expire.
 *
 * I4. Every request to the source acquires a client's permit, and counts in the base's budget.
 */

import { withTimeout } from "../async";
import type { Context } from "../context";
import { type Base, connectOwn, sourceAccess } from "../control/bases";
import { quotaKeyOf } from "../control/budgets";
import { BasetideError } from "../errors";
import { MeteredSource, type RateLimiter } from "../limiter";
import { LruMap } from "../lru-map";
import type { AttachmentRef } from "../replica";
import { attachmentsIn, isTableCopied, type Platform, platformById, type SourceRecord } from "../source";
import { RecordQueue, type RecordSource } from "./record-queue";

/** Minimum remaining lifetime of a URL that clients get, ms: a download begins at once, a page stays open. */
const LEAST_LIFE_MS = 30 * 60_000;
/** How long a missing attachment is not looked for again, ms. */
const GONE_MS = 60_000;
/** Maximum number of cached records, and of bases with a record queue: the least recently used are dropped first. */
const MAX_RECORDS = 20_000;
const MAX_LINES = 1000;

interface FreshUrl {
  url: string;
  /** How long the URL still opens the attachment, ms. */
  lastsMs: number;
}

/** The base whose attachments are looked for. */
type AttachedBase = Pick<Base, "id" | "platform" | "sourceBaseId" | "selection">;

/** Of the thumbnails that Airtable makes: 36 pixels high, and up to 512. */
const SIZES = ["small", "large"] as const;
export type ThumbnailSize = (typeof SIZES)[number];

export function isThumbnailSize(text: unknown): text is ThumbnailSize {
  return SIZES.some((size) => size === text);
}

interface FreshContext extends Pick<Context, "config" | "db" | "secrets"> {
  limiter: RateLimiter;
  platforms: Platform[];
}

/** The attachments of a record when it was read. */
interface Known {
  readAt: number;
  /** How long its URLs work at least since then, ms. */
  lifeMs: number;
  /** URLs by field and attachment. */
  urls: Map<string, string>;
  /** Attachments that were requested and not found. */
  gone: Set<string>;
}

export class FreshUrls {
  readonly #ctx: FreshContext;
  readonly #now: () => number;
  readonly #known = new LruMap<string, Known>(MAX_RECORDS);
  readonly #lines = new Map<string, RecordQueue>();

  /** @param now ms on any monotonic clock */
  constructor(ctx: FreshContext, now: () => number = () => performance.now()) {
    this.#ctx = ctx;
    this.#now = now;
  }

  /**
   * Returns where the source has the attachment.
   *
   * @param size where it has this thumbnail of the attachment
   * @returns null if the attachment, its record, or the field no longer exists, or the attachment has no such thumbnail
   * @throws BasetideError `rate_limited`, `source_…`, `quota_timeout`, `control_unavailable`, `secret_unreadable`
   */
  async find(base: AttachedBase, place: AttachmentRef, size?: ThumbnailSize): Promise<FreshUrl | null> {
    // What has been read of the record before may be more than what is copied now.
    if (!isCopied(base, place)) return null;
    const key = `${base.id}/${place.tableId}/${place.recordId}`;
    const name = nameOf(place.fieldId, place.attachmentId, size);
    const known = this.#known.get(key);
    const answer = known && this.#answer(known, name);
    if (answer !== undefined) return answer;
    // A source that hangs must not delay a client for longer.
    const timeoutMs = this.#ctx.config.upstreamTimeoutMs;
    const reading = this.#queueOf(base).read(place.tableId, place.recordId);
    const fresh = this.#cache(key, base, await withTimeout(timeoutMs, "source_timeout", reading));
    if (!fresh.urls.has(name)) fresh.gone.add(name);
    return this.#answer(fresh, name) ?? null;
  }

  /** Undefined: unknown. */
  #answer({ readAt, lifeMs, urls, gone }: Known, name: string): FreshUrl | null | undefined {
    const ageMs = this.#now() - readAt;
    const url = urls.get(name);
    if (url !== undefined && ageMs <= lifeMs - LEAST_LIFE_MS) return { url, lastsMs: lifeMs - ageMs };
    return url === undefined && gone.has(name) && ageMs < GONE_MS ? null : undefined;
  }

  #cache(key: string, { platform }: AttachedBase, record: SourceRecord | null): Known {
    const { attachmentUrlMs } = platformById(this.#ctx.platforms, platform).limits;
    const known: Known = {
      readAt: this.#now(),
      lifeMs: attachmentUrlMs,
      urls: urlsOf(record),
      gone: new Set(),
    };
    this.#known.set(key, known);
    return known;
  }

  #queueOf(base: AttachedBase): RecordQueue {
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

/** Reads the base's records with its current own key, out of the clients' quota. */
function recordSource(ctx: FreshContext, base: AttachedBase): RecordSource {
  const { limiter, config } = ctx;
  const { sourceBaseId } = base;
  const deadlineMs = config.upstreamTimeoutMs;
  async function open(): Promise<MeteredSource> {
    const signal = AbortSignal.timeout(2 * config.upstreamTimeoutMs);
    return new MeteredSource({
      connection: connectOwn(
        ctx,
        platformById(ctx.platforms, base.platform),
        await sourceAccess(ctx, base.id),
      ),
      sourceBaseId,
      limiter,
      quotaKey: quotaKeyOf(base),
      queue: { priority: "client", deadlineMs, signal, isOwnKey: true, shownAs: "console" },
      signal,
    });
  }
  return {
    listed: async (tableId, recordIds) => (await open()).listRecords(tableId, recordIds),
    record: async (tableId, recordId) =>
      (await open()).send((source, signal) => source.getRecord(sourceBaseId, tableId, recordId, signal)),
  };
}

/** Returns the URLs of a record's attachments and of their thumbnails. Accepts only web addresses: a client is redirected there. */
function urlsOf(record: SourceRecord | null): Map<string, string> {
  const urls = new Map<string, string>();
  for (const [fieldId, cell] of Object.entries(record?.fields ?? {})) {
    for (const { id, url, thumbnails } of attachmentsOf(cell)) {
      const add = (text: unknown, size?: ThumbnailSize) => {
        const parsed = typeof text === "string" ? URL.parse(text) : null;
        if (parsed && /^https?:$/.test(parsed.protocol)) urls.set(nameOf(fieldId, id, size), parsed.href);
      };
      add(url);
      for (const size of SIZES) add(thumbnails?.[size]?.url, size);
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

function isCopied({ selection }: AttachedBase, { tableId, fieldId }: AttachmentRef): boolean {
  return !selection || (isTableCopied(selection, tableId) && !selection.tables[tableId]?.fields?.[fieldId]);
}

function nameOf(fieldId: string, attachmentId: string, size?: ThumbnailSize): string {
  const name = `${fieldId}/${attachmentId}`;
  return size === undefined ? name : `${name}/${size}`;
}
