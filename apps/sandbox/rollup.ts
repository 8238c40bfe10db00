/**
 * Aggregates the values of a rollup.
 *
 * Without values, SUM, MAX and MIN give 0, AVERAGE gives NaN, and the joining ones give an empty cell.
 */

const ERROR_CELL = { error: "#ERROR!" };

/** Aggregations over numbers; the rest work on any values. */
const NUMERIC: Record<string, (numbers: number[]) => number> = {
  SUM: (numbers) => numbers.reduce((sum, value) => sum + value, 0),
  AVERAGE: (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length,
  MAX: (numbers) => (numbers.length === 0 ? 0 : Math.max(...numbers)),
  MIN: (numbers) => (numbers.length === 0 ? 0 : Math.min(...numbers)),
  COUNT: (numbers) => numbers.length,
};

const GENERAL: Record<string, (values: unknown[], textOf: (value: unknown) => string) => unknown> = {
  COUNTA: (values) => values.length,
  COUNTALL: (values) => values.length,
  ARRAYJOIN: (values, textOf) => values.map(textOf).join(", "),
  CONCATENATE: (values, textOf) => values.map(textOf).join(""),
  ARRAYUNIQUE: (values) => [...new Map(values.map((value) => [JSON.stringify(value), value])).values()],
  ARRAYCOMPACT: (values) => values,
  ARRAYFLATTEN: (values) => values,
  AND: (values) => (values.every(Boolean) ? 1 : 0),
  OR: (values) => (values.some(Boolean) ? 1 : 0),
  XOR: (values) => values.filter(Boolean).length % 2,
};

/**
 * Returns the rollup's cell.
 *
 * @param values non-empty cells of the linked rows, flattened
 * @param textOf a value as displayed text
 */
export function aggregate(name: string, values: unknown[], textOf: (value: unknown) => string): unknown {
  if (values.some(isErrorCell)) return ERROR_CELL;
  const numeric = NUMERIC[name];
  if (numeric) return numberCell(numeric(values.filter((value) => typeof value === "number")));
  const general = GENERAL[name];
  return general ? general(values, textOf) : ERROR_CELL;
}

/** `value` as a cell: JSON cannot represent a number that is not finite. */
function numberCell(value: number): unknown {
  if (Number.isFinite(value)) return value;
  return { specialValue: Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity" };
}

function isErrorCell(value: unknown): boolean {
  return typeof value === "object" && value !== null && ("error" in value || "specialValue" in value);
}
