/**
 * Whether what a page says of many records at once may be a change of the schema.
 *
 * I6. A field that is deleted or retyped changes every record that has a cell in it, and lists go on as if nothing had
 * happened: before such a page empties a column of its rows, a schema check has to tell. In a table whose records
 * change all the time (formulas that tell the time) that is no news, as long as no column is empty that was filled. To
 * a worker that knows nothing of the replica's rows yet every record has changed: it looks once.
 */
import type { RecordPage } from "../../source";

/** Fewer changed records in a page are not many, unless they are all that it has. */
const MANY = 10;

export class MassChange {
  #isUsual = false;
  /** Fields that most records of the last page of many changes had cells in. */
  #filled = new Set<string>();

  /**
   * @param changed indices of the page's records that are not as they were
   * @param isPart the table has more pages than this one; one that has not is of one moment
   */
  isNews(page: RecordPage, changed: number[], isPart: boolean): boolean {
    const wasUsual = this.#isUsual;
    const all = changed.length === page.size;
    this.#isUsual = changed.length > page.size / 2 && (changed.length >= MANY || (isPart && all));
    if (!this.#isUsual) return false;
    const before = this.#filled;
    const cells = cellCounts(page, changed);
    this.#filled = new Set([...cells].filter(([, count]) => count > changed.length / 2).map(([id]) => id));
    return !wasUsual || [...before].some((id) => !cells.has(id));
  }
}

/** How many of the records have a cell in each field, by field id. */
function cellCounts(page: RecordPage, indices: number[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const index of indices) {
    for (const id of Object.keys(page.record(index).fields)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
