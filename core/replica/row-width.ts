/**
 * Keeps rows within the size that Postgres stores: a row must fit a page of 8 kB. Long values are moved out of the row
 * (TOAST), but each leaves a pointer behind. A row of 450 long texts is too wide, and so is one of 340 texts of 23
 * bytes.
 *
 * I1. A row within the limit is stored, whatever its values. Cells are emptied from the last field on, each with an
 *     issue; most tables have too few fields to ever need that.
 * I2. I1 holds only without compression: a compressed value can be too short to move out and yet longer than a
 *     pointer. So the columns of a table that has a limit are stored `external`.
 */
import type { ColumnSpec, ColumnType, Row } from "./spec";

/** Largest tuple, bytes (MaxHeapTupleSize with pages of 8 kB). */
export const MAX_ROW_BYTES = 8160;
/** Largest tuple header: 23 bytes, a bit per column, and the gap up to a multiple of 8. */
const headerBytes = (columns: number) => 23 + Math.ceil(columns / 8) + 7;

/**
 * A value of up to this many bytes, including its length, stays in the row; a longer one can be reduced to a pointer.
 */
const MAX_INLINE_BYTES = 24;
const POINTER_BYTES = 18;

/** `id`, and `created_time` with the gap before it. */
const RECORD_BYTES = MAX_INLINE_BYTES + 15;

/** The most that a cell of each type takes in the row, including alignment. */
const widest: Record<ColumnType, number> = {
  text: MAX_INLINE_BYTES,
  // The shortest non-empty array is long enough to be moved out.
  "text[]": POINTER_BYTES,
  numeric: MAX_INLINE_BYTES,
  bool: 1,
  date: 7,
  timestamp: 15,
  jsonb: MAX_INLINE_BYTES,
};

/** Returns whether a row with these columns can be too wide. */
export function mayBeTooWide(columns: readonly ColumnSpec[]): boolean {
  const sum = (bytes: number, { columnType }: ColumnSpec) => bytes + widest[columnType];
  return columns.reduce(sum, fixedBytes(columns)) > MAX_ROW_BYTES;
}

/**
 * Returns the check of one table's rows, or undefined if none can be too wide. It empties cells of `row` until the row
 * fits, and calls `onEmptied` for each with its index in `columns`.
 */
export function widthLimit(
  columns: readonly ColumnSpec[],
): ((row: Row, onEmptied: (index: number) => void) => void) | undefined {
  if (!mayBeTooWide(columns)) return undefined;
  return (row, onEmptied) => {
    let bytes = columns.reduce((sum, column) => sum + cellBytes(row, column), fixedBytes(columns));
    for (let index = columns.length - 1; bytes > MAX_ROW_BYTES; index--) {
      const column = columns[index]!;
      // A checkbox is never null, and emptying it would save almost nothing.
      if (column.columnType === "bool" || row[column.name] === null) continue;
      bytes -= cellBytes(row, column);
      row[column.name] = null;
      onEmptied(index);
    }
  };
}

/** Bytes that every row takes, whatever its cells hold. */
function fixedBytes(columns: readonly ColumnSpec[]): number {
  return headerBytes(columns.length + 2) + RECORD_BYTES;
}

/** The most that the cell can take after everything that can be moved out has been. */
function cellBytes(row: Row, { name, columnType }: ColumnSpec): number {
  const value = row[name];
  if (value === null || value === undefined) return 0;
  if (columnType !== "text" && columnType !== "numeric") return widest[columnType];
  const bytes = columnType === "text" ? 1 + Buffer.byteLength(String(value)) : numericBytes(String(value));
  return bytes > MAX_INLINE_BYTES ? POINTER_BYTES : bytes;
}

/** Two bytes for every four digits, counted from the decimal point in both directions, and a header. */
function numericBytes(decimal: string): number {
  const [mantissa = "", exponent] = decimal.split("e");
  const digits = mantissa.replace(/[-+.]/g, "").length;
  return (exponent === undefined ? 3 : 5) + 2 * (Math.ceil(digits / 4) + 1);
}
