/**
 * The queue of records of one base that are read from the source because their attachments are opened.
 *
 * One request at a time, and after an initial burst one a second. Calls for a queued record share its read, and one
 * request reads up to a hundred records of a table. So a page full of pictures costs two or three requests, and a
 * crawler at most a fifth of the base's quota.
 */
import { asBasetideError, BasetideError, isBasetideError } from "../errors";
import { type SourceRecord, strictest } from "../source";

/** Most ids that a source accepts in one request. */
const BATCH = strictest().pageSize;
/** Requests without a pause after a quiet time, and the pause between further ones, ms. */
const BURST = 10;
const GAP_MS = 1000;
/** Maximum number of waiting records; further calls are rejected and may retry later. */
const MAX_WAITING = 1000;
const RETRY_AFTER_SECONDS = 5;

/** Each call is one request to the source; both throw BasetideError `source_…`, `quota_timeout`. */
export interface RecordSource {
  /** Returns those of the records that the source lists. */
  listed(tableId: string, recordIds: string[]): Promise<SourceRecord[]>;
  /** Null: the source says that the record does not exist. */
  record(tableId: string, recordId: string): Promise<SourceRecord | null>;
}

interface Waiting {
  tableId: string;
  recordId: string;
  /**
   * Sources may answer "forbidden" for a deleted record, and "no records" for an existing one: the other call then
   * decides.
   */
  suspicion: "none" | "forbidden" | "unlisted";
  found: PromiseWithResolvers<SourceRecord | null>;
}

export class RecordQueue {
  readonly #source: RecordSource;
  readonly #pause: (ms: number) => Promise<void>;
  readonly #now: () => number;
  readonly #waiting = new Map<string, Waiting>();
  #isReading = false;
  /** When the next request would be due if no burst were saved up. */
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(
    source: RecordSource,
    time: { now: () => number; pause: (ms: number) => Promise<void> } = {
      now: () => performance.now(),
      pause: (ms) => Bun.sleep(ms),
    },
  ) {
    this.#source = source;
    this.#now = time.now;
    this.#pause = time.pause;
  }

  get isIdle(): boolean {
    return !this.#isReading && this.#now() > this.#dueAt;
  }

  /**
   * Returns the record, read from the source after this call; null if it no longer exists.
   *
   * @throws BasetideError `rate_limited`, `source_…`, `quota_timeout`
   */
  read(tableId: string, recordId: string): Promise<SourceRecord | null> {
    const key = `${tableId}/${recordId}`;
    const known = this.#waiting.get(key);
    if (known) return known.found.promise;
    if (this.#waiting.size >= MAX_WAITING) {
      throw new BasetideError("rate_limited", "Too many attachments of this base are opened at once", {
        details: { retryAfterSeconds: RETRY_AFTER_SECONDS },
      });
    }
    const waiting: Waiting = { tableId, recordId, suspicion: "none", found: Promise.withResolvers() };
    this.#waiting.set(key, waiting);
    if (!this.#isReading) void this.#readAll();
    return waiting.found.promise;
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    while (this.#waiting.size > 0) {
      await this.#inPace();
      const batch = this.#take();
      try {
        await this.#read(batch);
      } catch (error) {
        for (const { found } of batch) found.reject(asBasetideError(error));
      }
    }
    this.#isReading = false;
  }

  async #inPace(): Promise<void> {
    const dueAt = Math.max(this.#dueAt, this.#now() - BURST * GAP_MS) + GAP_MS;
    const waitMs = dueAt - this.#now();
    if (waitMs > 0) await this.#pause(waitMs);
    this.#dueAt = dueAt;
  }

  /** Later calls wait for the next request: this one may not include writes made since. */
  #take(): Waiting[] {
    const [first, ...rest] = this.#waiting.values();
    const isListed = ({ tableId, suspicion }: Waiting) =>
      tableId === first!.tableId && suspicion !== "unlisted";
    const batch =
      first!.suspicion === "unlisted" ? [first!] : [first!, ...rest.filter(isListed).slice(0, BATCH - 1)];
    for (const { tableId, recordId } of batch) this.#waiting.delete(`${tableId}/${recordId}`);
    return batch;
  }

  async #read(batch: Waiting[]): Promise<void> {
    const [only] = batch;
    if (batch.length === 1 && only!.suspicion !== "forbidden") return this.#readByName(only!);
    const ids = batch.map(({ recordId }) => recordId);
    const listed = await this.#source.listed(only!.tableId, ids);
    const byId = new Map(listed.map((record) => [record.id, record]));
    for (const waiting of batch) {
      const record = byId.get(waiting.recordId);
      if (record) waiting.found.resolve(record);
      // An answer that contains other records is trusted.
      else if (waiting.suspicion === "forbidden" || listed.length > 0) waiting.found.resolve(null);
      else this.#askAgain(waiting, "unlisted");
    }
  }

  async #readByName(waiting: Waiting): Promise<void> {
    const { tableId, recordId, suspicion, found } = waiting;
    try {
      found.resolve(await this.#source.record(tableId, recordId));
    } catch (error) {
      if (!isBasetideError(error, "source_forbidden")) throw error;
      if (suspicion === "unlisted") found.resolve(null);
      else this.#askAgain(waiting, "forbidden");
    }
  }

  /** The same record may have been requested meanwhile: both calls share the result. */
  #askAgain(waiting: Waiting, suspicion: Waiting["suspicion"]): void {
    const key = `${waiting.tableId}/${waiting.recordId}`;
    const other = this.#waiting.get(key);
    if (other) other.found.promise.then(waiting.found.resolve, waiting.found.reject);
    else this.#waiting.set(key, { ...waiting, suspicion });
  }
}
