/**
 * Cells of attachments that keep some of the files that the record has: SQL shows URLs, and the source wants ids.
 *
 * Which files those are is decided when the operation is sent, by what the record has then: `withFiles` with the cells
 * that were read for it. After that, these cells are recorded as those that it replaces, and give the same result.
 */
import type { CellValues } from "./operations";

/** In a cell of attachments: all files that it has, or one by its place among as many as SQL showed. */
export type KeptFile = { kept: "all" } | { kept: number; of: number };

const isKept = (one: unknown): one is KeptFile => typeof one === "object" && one !== null && "kept" in one;
const keptIn = (cell: unknown): KeptFile[] => (Array.isArray(cell) ? cell.filter(isKept) : []);
const filesOf = (cell: unknown) => (Array.isArray(cell) ? (cell as { id: string }[]) : []);

/** Returns the keys of the cells that keep files. */
export function keepingFiles(cells: CellValues = {}): string[] {
  return Object.keys(cells).filter((key) => keptIn(cells[key]).length > 0);
}

/** Returns the keys of those that are stale if the record has another number of files than SQL showed. */
export function choosingFiles(cells: CellValues = {}): string[] {
  return Object.keys(cells).filter((key) => keptIn(cells[key]).some(({ kept }) => kept !== "all"));
}

/** Returns the keys of the cells in which the record has another number of files than SQL showed. */
export function staleFiles(cells: CellValues = {}, has: CellValues): string[] {
  return choosingFiles(cells).filter((key) =>
    keptIn(cells[key]).some((one) => one.kept !== "all" && one.of !== filesOf(has[key]).length),
  );
}

/** Returns the cells as the source wants them, for a record that has these. */
export function withFiles(cells: CellValues, has: CellValues = {}): CellValues {
  const files = (key: string, one: KeptFile) => {
    const all = filesOf(has[key]);
    return (one.kept === "all" ? all : all.slice(one.kept, one.kept + 1)).map(({ id }) => ({ id }));
  };
  return Object.fromEntries(
    Object.entries(cells).map(([key, cell]) => [
      key,
      keptIn(cell).length > 0
        ? (cell as unknown[]).flatMap((one) => (isKept(one) ? files(key, one) : [one]))
        : cell,
    ]),
  );
}
