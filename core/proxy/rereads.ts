/**
 * Reads records again whose row image in SQL may be older than a write: one request at a time for each table and
 * caller, shared by all writes that wait for its records.
 *
 * I1. A wait for a record ends only when SQL shows a row image that was requested from the source after the wait began,
 * by this request or by any other. An image that loses is read again, three times at most: the image that the second
 * one loses to was requested after the first one was applied or lost, and so after the wait began.
 */
import { type SourceRecord, strictest } from "../source";
import type { RowImages } from "./replica-handle";

/**
 * While a request waits for the quota, its read version is renewed this often, ms: an older one is more likely to lose.
 */
const REFRESH_MS = 100;
/** Maximum number of ids in one request. */
const BATCH = strictest().pageSize;
/** Requests of one run in a row that end no wait, after which the run fails. */
const MAX_VAIN = 20;

/** Records that SQL must show as of `since` or later. */
interface Wanted {
  tableId: string;
  ids: readonly string[];
  /** A read version that was taken after the write was answered. */
  since: number;
  /** The caller in whose share of the quota the requests wait. */
  caller: string;
}

/** Reads records and applies them. */
export interface RecordReader {
  /** @param choose returns the ids; called when the request may be sent, which must then happen at once */
  read(
    tableId: string,
    choose: () => readonly string[],
    signal: AbortSignal,
  ): Promise<{ records: SourceRecord[]; gone: string[] }>;
  /** @returns the ids whose image lost; null if neither the replica nor the source has the table */
  apply(tableId: string, images: RowImages): Promise<readonly string[] | null>;
}

/** A new read version, and for each record the read version of its latest row image. */
interface LatestVersions {
  readVersion: number;
  readVersions: ReadonlyMap<string, number>;
}

interface Wait {
  tableId: string;
  caller: string;
  /** Records that are not shown yet. */
  ids: Set<string>;
  since: number;
  resolve(hasTable: boolean): void;
  reject(error: unknown): void;
}

interface Run {
  tableId: string;
  caller: string;
  reading: RecordReader;
  readVersion: number;
  isRefreshing: boolean;
  isSent: boolean;
  over: AbortController;
}

export class Rereads {
  readonly #latest: (tableId: string, ids: string[]) => Promise<LatestVersions>;
  readonly #waits = new Set<Wait>();
  /** By table and caller. */
  readonly #runs = new Map<string, Run>();

  constructor(latest: (tableId: string, ids: string[]) => Promise<LatestVersions>) {
    this.#latest = latest;
  }

  /**
   * Resolves when SQL shows the records as of `since` or later.
   *
   * @returns false if neither the replica nor the source has the table
   * @throws the signal's reason; errors of `reading`
   */
  async shown(
    { tableId, ids, since, caller }: Wanted,
    reading: RecordReader,
    signal: AbortSignal,
  ): Promise<boolean> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const wait: Wait = { tableId, caller, ids: new Set(ids), since, resolve, reject };
    const leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave);
    this.#waits.add(wait);
    this.#start(wait, reading);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", leave);
      this.#waits.delete(wait);
      this.#endIdle();
    }
  }

  /**
   * Records that SQL has row images of these records that were requested after the read version `readVersions` was
   * taken.
   */
  applied(tableId: string, ids: Iterable<string>, readVersions: number): void {
    this.#settle(tableId, new Map(Array.from(ids, (id) => [id, readVersions])));
    for (const run of this.#runs.values()) {
      if (run.tableId === tableId && !run.isSent) this.#refreshLater(run);
    }
  }

  #start({ tableId, caller }: Wait, reading: RecordReader): void {
    const key = `${tableId} ${caller}`;
    if (this.#runs.has(key)) return;
    const state = { readVersion: 0, isRefreshing: false, isSent: false, over: new AbortController() };
    const run: Run = { tableId, caller, reading, ...state };
    this.#runs.set(key, run);
    void this.#run(run, key);
  }

  async #run(run: Run, key: string): Promise<void> {
    try {
      for (let vain = 0; this.#isWanted(run); vain++) {
        if (vain === MAX_VAIN)
          throw new Error(`Records of table ${run.tableId} change faster than they can be read`);
        const before = this.#waits.size;
        await this.#readOnce(run);
        if (this.#waits.size < before) vain = 0;
      }
    } catch (error) {
      if (this.#runs.get(key) !== run) return;
      for (const wait of this.#waits) if (isOf(run, wait)) wait.reject(error);
    } finally {
      if (this.#runs.get(key) === run) this.#runs.delete(key);
    }
  }

  async #readOnce(run: Run): Promise<void> {
    const { tableId, reading, over } = run;
    await this.#refresh(run);
    if (!this.#isWanted(run)) return;
    const refresh = setInterval(() => this.#refreshLater(run), REFRESH_MS);
    let ids: string[] = [];
    let readVersion = 0;
    const choose = () => {
      clearInterval(refresh);
      run.isSent = true;
      ({ readVersion } = run);
      ids = this.#idsFor(run);
      return ids;
    };
    try {
      const read = await reading.read(tableId, choose, over.signal);
      const lost = await reading.apply(tableId, { readVersion, ...read });
      run.isSent = false;
      if (!lost) for (const wait of this.#waitsOf(tableId)) wait.resolve(false);
      else
        this.applied(
          tableId,
          ids.filter((id) => !lost.includes(id)),
          readVersion,
        );
    } finally {
      run.isSent = false;
      clearInterval(refresh);
    }
  }

  /** Takes a new read version, and checks which records other writers have brought to SQL. */
  async #refresh(run: Run): Promise<void> {
    const ids = new Set(this.#waitsOf(run.tableId).flatMap((wait) => [...wait.ids]));
    const { readVersion, readVersions } = await this.#latest(run.tableId, [...ids]);
    run.readVersion = Math.max(run.readVersion, readVersion);
    this.#settle(run.tableId, readVersions);
  }

  /**
   * The same while the run waits for the quota. One refresh at a time; if it fails, the present read version is used.
   */
  #refreshLater(run: Run): void {
    if (run.isRefreshing) return;
    run.isRefreshing = true;
    this.#refresh(run)
      .catch(() => {})
      .finally(() => {
        run.isRefreshing = false;
      });
  }

  #settle(tableId: string, readVersions: ReadonlyMap<string, number>): void {
    for (const wait of this.#waitsOf(tableId)) {
      for (const id of wait.ids) if ((readVersions.get(id) ?? 0) > wait.since) wait.ids.delete(id);
      if (wait.ids.size > 0) continue;
      this.#waits.delete(wait);
      wait.resolve(true);
    }
    this.#endIdle();
  }

  /** A request that no caller waits for any longer is canceled unless it was already sent. */
  #endIdle(): void {
    for (const [key, run] of this.#runs) {
      if (run.isSent || this.#isWanted(run)) continue;
      this.#runs.delete(key);
      run.over.abort();
    }
  }

  #isWanted(run: Run): boolean {
    return this.#waits.values().some((wait) => isOf(run, wait));
  }

  #waitsOf(tableId: string): Wait[] {
    return [...this.#waits].filter((wait) => wait.tableId === tableId);
  }

  /** The run's own ids first; ids of other callers fill the request. */
  #idsFor(run: Run): string[] {
    const waits = this.#waitsOf(run.tableId);
    const own = waits.filter((wait) => isOf(run, wait));
    return [...new Set([...own, ...waits].flatMap((wait) => [...wait.ids]))].slice(0, BATCH);
  }
}

function isOf({ tableId, caller }: Run, wait: Wait): boolean {
  return wait.tableId === tableId && wait.caller === caller;
}
