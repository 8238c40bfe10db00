/**
 * Gives sessions that read the catalog (pg_dump, for example) time to lock the tables that they found before those
 * tables change. A dump that runs while tables are merged, renamed and dropped is therefore complete and consistent.
 * See `sql/replica/catalog-readers.sql`.
 */
import { isBasetideError } from "../errors";
import { CATALOG_READ, onReplica } from "./connection";
import type { Replica } from "./replica";

/** How long to wait for a session, once. */
const GRACE_MS = 10_000;
/**
 * The total wait, in graces, while a session locks tables one by one, a round trip each (pg_dump before version 16).
 */
const MOST_GRACES = 6;
const POLL_MS = 100;
/** After this many tries the table is changed even if new sessions begin to read the catalog at every try. */
const MOST_TRIES = 10;

export class CatalogReaders {
  /** When each session was first seen, and since when it has had its current number of locks (performance.now()). */
  readonly #seen = new Map<string, { since: number; locks: number; locksSince: number }>();

  constructor(
    private readonly replica: Replica,
    private readonly graceMs = GRACE_MS,
  ) {}

  /**
   * Runs `work`, which changes these tables (qualified), once every session that reads the catalog has locked them, has
   * ended, or has used up its time. Repeats if `work` finds another such session.
   *
   * @param work receives the sessions whose time is up, for `may_change`; after MOST_TRIES null, which stands for all
   * @param triesFirst `work` locks no table that people read, so that it may find out by itself whether there are any
   */
  async change<T>(
    tables: string[],
    work: (settled: string[] | null) => Promise<T>,
    triesFirst = false,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      if (tries > 1 || !triesFirst) await this.#settle(tables);
      try {
        return await onReplica(() => work(tries > MOST_TRIES ? null : this.#settled()));
      } catch (error) {
        if (!isBasetideError(error, "replica_busy") || error.details.sqlState !== CATALOG_READ) throw error;
      }
    }
  }

  /** Waits for the sessions that read the catalog now. The change itself detects those that begin later. */
  async #settle(tables: string[]): Promise<void> {
    let waitedFor = await this.#readers(tables);
    for (;;) {
      waitedFor = waitedFor.filter((reader) => !this.#isSettled(reader));
      if (waitedFor.length === 0) return;
      await Bun.sleep(POLL_MS);
      const left = new Set(await this.#readers(tables));
      waitedFor = waitedFor.filter((reader) => left.has(reader));
    }
  }

  #settled(): string[] {
    return [...this.#seen.keys()].filter((reader) => this.#isSettled(reader));
  }

  #readers(tables: string[]): Promise<string[]> {
    const { sql, swap } = this.replica;
    return onReplica(async () => {
      const rows = await sql<{ reader: string; locks: number }[]>`
        select reader, locks from ${sql.unsafe(swap)}.catalog_readers(array(
          select to_regclass(t)::oid from unnest(${tables}::text[]) as t where to_regclass(t) is not null))`;
      const now = performance.now();
      for (const { reader, locks } of rows) {
        const known = this.#seen.get(reader);
        if (known?.locks === locks) continue;
        this.#seen.set(reader, { since: known?.since ?? now, locks, locksSince: now });
      }
      return rows.map(({ reader }) => reader);
    });
  }

  #isSettled(reader: string): boolean {
    const { since, locksSince } = this.#seen.get(reader)!;
    const now = performance.now();
    return now - locksSince >= this.graceMs || now - since >= this.graceMs * MOST_GRACES;
  }
}
