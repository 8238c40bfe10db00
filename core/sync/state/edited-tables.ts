/** Where records of a base are edited: the table whose latest modified records the next change is expected in. */
import { RECENT_MS } from "../pacing";

export class EditedTables {
  /** The tables that the feed has named last, and the first of them that it had named before, too. */
  #named: ReadonlySet<string> = new Set();
  #expected: string | undefined;
  /** Until when a table does not count, because its latest modified records take long to find (performance.now()). */
  readonly #slowUntil = new Map<string, number>();

  /** Undefined while edits take turns between tables. */
  get expected(): string | undefined {
    const id = this.#expected;
    return id !== undefined && performance.now() >= (this.#slowUntil.get(id) ?? 0) ? id : undefined;
  }

  /** Records that the feed has named changes of these tables; none says nothing. */
  named(tableIds: Iterable<string>): void {
    const named = new Set(tableIds);
    if (named.size === 0) return;
    [this.#expected] = named.intersection(this.#named);
    this.#named = named;
  }

  /** Records that the latest modified records of the table took too long to find. */
  recordSlow(tableId: string): void {
    this.#slowUntil.set(tableId, performance.now() + RECENT_MS);
  }
}
