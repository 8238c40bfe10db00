/**
 * Lets sessions that read the catalog lock what they found there before it changes, as pg_dump does: a dump that runs
 * while tables are swapped, merged and dropped is complete, and of one moment. See `sql/replica/catalog-readers.sql`.
 */
import { isBasetideError } from "../errors";
import { CATALOG_READ, onReplica } from "./connection";
import type { Replica } from "./replica";

/** A session is waited for so long, once. */
const GRACE_MS = 10_000;
/** And so long in all while it locks one table after the other, a round trip each, as pg_dump did before version 16. */
const MOST_GRACES = 6;
const POLL_MS = 100;
/** Where sessions begin to read the catalog at every try, a table is changed in the end. */
const MOST_TRIES = 10;

export class CatalogReaders {
  /** When each was first seen, and when with so many locks as now (performance.now()). */
  readonly #seen = new Map<string, { since: number; locks: number; locksSince: number }>();

  constructor(
    private readonly replica: Replica,
    private readonly graceMs = GRACE_MS,
  ) {}

  /**
   * Runs `work`, which changes these tables (qualified), once every session that reads the catalog has locked them, has
   * ended, or had its time; again where it finds another one.
   *
   * @param work gets the sessions that had their time, for `may_change`; null, which is all, in the end
   */
  async change<T>(tables: string[], work: (settled: string[] | null) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await this.#settle(tables);
      try {
        return await onReplica(() => work(tries > MOST_TRIES ? null : this.#settled()));
      } catch (error) {
        if (!isBasetideError(error, "replica_busy") || error.details.sqlState !== CATALOG_READ) throw error;
      }
    }
  }

  /** Waits for the sessions that read the catalog now. One that begins later is for the change itself to find. */
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
