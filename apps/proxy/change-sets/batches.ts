/** Divides the operations of a change set into calls, in their order. */
import { areById, type HeldItem, isCreatedBy, linksIn } from "../../../core/control/change-sets";
import { proxied } from "../../../core/source";

/** Returns the operations at the beginning that one call can make: of one table and kind, each record once. */
export function firstBatch(items: HeldItem[]): HeldItem[] {
  const [first] = items;
  if (!first) return [];
  const batch: HeldItem[] = [];
  for (const item of items) {
    const isOther =
      item.table !== first.table ||
      item.operation !== first.operation ||
      areById(item.cells ?? {}) !== areById(first.cells ?? {});
    const isRepeated = batch.some(({ recordId }) => recordId !== null && recordId === item.recordId);
    const links = linksIn(item.cells);
    const isTooEarly = batch.some(({ position }) => links.includes(position));
    if (isOther || isRepeated || isTooEarly || batch.length === proxied.limits.writeSize) break;
    batch.push(item);
  }
  return batch;
}

/** Returns the operations up to the first that changes a record again: what that one replaces is not known before. */
export function untilRepeated(items: HeldItem[]): HeldItem[] {
  const seen = new Set<string>();
  const end = items.findIndex(({ recordId }) => {
    if (recordId === null) return false;
    const isRepeated = seen.has(recordId);
    seen.add(recordId);
    return isRepeated;
  });
  return end === -1 ? items : items.slice(0, end);
}

/** Returns the cells with the ids of the records that the set has made; null if one of them was not made. */
export function withLinks(
  cells: HeldItem["cells"],
  made: ReadonlyMap<number, string | null>,
): HeldItem["cells"] | null {
  if (linksIn(cells).length === 0) return cells;
  if (linksIn(cells).some((position) => !made.get(position))) return null;
  return Object.fromEntries(
    Object.entries(cells!).map(([key, cell]) => [
      key,
      Array.isArray(cell) ? cell.map((one) => (isCreatedBy(one) ? made.get(one.created_by) : one)) : cell,
    ]),
  );
}
