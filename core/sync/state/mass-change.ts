/**
 * Detects pages whose changes may come from a change of the schema.
 *
 * I6. A field that is deleted or retyped changes every record with a cell in it, and lists continue as if nothing had
 * happened: before such a page clears a column, a schema check must confirm it. In a table whose records change all
 * the time (time-dependent formulas), many changes are normal, as long as no filled column is cleared. To a worker
 * without fingerprints every record has changed: it runs one check.
 */
import type { RecordPage } from "../../source";

/** Fewer changed records in a page do not count as many, unless they are all that it has. */
const MANY = 10;

export class MassChange {
  #isUsual = false;
  /** Fields in which most records of the last page with many changes had cells. */
  #filled = new Set<string>();

  /**
   * @param changed indices of the page's records that have changed
   * @param isPart the table has more pages than this one; a single page shows one moment
   */
  isNews(page: RecordPage, changed: number[], isPart: boolean): boolean {
    const wasUsual = this.#isUsual;
    if (changed.length === 0) {
      this.#isUsual = false;
      return false;
    }
    const all = changed.length === page.size;
    this.#isUsual = changed.length > page.size / 2 && (changed.length >= MANY || (isPart && all));
    if (!this.#isUsual) return false;
    const before = this.#filled;
    const cells = cellCounts(page, changed);
    this.#filled = new Set([...cells].filter(([, count]) => count > changed.length / 2).map(([id]) => id));
    return !wasUsual || [...before].some((id) => !cells.has(id));
  }
}

/** Counts the records with a cell in each field, by field id. */
function cellCounts(page: RecordPage, indices: number[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const index of indices) {
    for (const id of Object.keys(page.record(index).fields)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
