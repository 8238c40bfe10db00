/**
 * Lets sessions that read the catalog lock what they found there before it changes, as pg_dump does: a dump that runs
 * while tables are swapped is complete, and of one moment. See `sql/replica/catalog-readers.sql`.
 */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** A session is waited for so long, once: pg_dump locks its tables one round trip each before version 16. */
const GRACE_MS = 10_000;
const POLL_MS = 100;
/** Where sessions read the catalog all the time, a table is changed in the end. */
const MOST_TRIES = 10;

export class CatalogReaders {
  /** When each was first seen (performance.now()). */
  readonly #seen = new Map<string, number>();
  #tries = 0;

  constructor(
    private readonly replica: Replica,
    private readonly graceMs = GRACE_MS,
  ) {}

  /**
   * Resolves when every session that reads the catalog now has locked these tables (qualified), has ended, or had its
   * time. One that begins later is for the change itself to find, which is then tried again.
   */
  async settle(tables: string[]): Promise<void> {
    this.#tries++;
    let waitedFor = await this.#readers(tables);
    for (;;) {
      const now = performance.now();
      for (const reader of waitedFor) if (!this.#seen.has(reader)) this.#seen.set(reader, now);
      waitedFor = waitedFor.filter((reader) => !this.#isSettled(reader, now));
      if (waitedFor.length === 0) return;
      await Bun.sleep(POLL_MS);
      const left = new Set(await this.#readers(tables));
      waitedFor = waitedFor.filter((reader) => left.has(reader));
    }
  }

  /** Those that had their time; null, which is all, where the change has found another one too often. */
  settled(): string[] | null {
    if (this.#tries > MOST_TRIES) return null;
    const now = performance.now();
    return [...this.#seen.keys()].filter((reader) => this.#isSettled(reader, now));
  }

  #readers(tables: string[]): Promise<string[]> {
    const { sql, swap } = this.replica;
    return onReplica(async () => {
      const rows = await sql<{ reader: string }[]>`
        select r.reader from ${sql.unsafe(swap)}.catalog_readers(array(
          select to_regclass(t)::oid from unnest(${tables}::text[]) as t where to_regclass(t) is not null)) as r (reader)`;
      return rows.map(({ reader }) => reader);
    });
  }

  #isSettled(reader: string, now: number): boolean {
    return now - this.#seen.get(reader)! >= this.graceMs;
  }
}
