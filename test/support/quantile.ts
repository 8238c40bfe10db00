/**
 * Returns the least value that the share `part` (0 to 1) of the values does not exceed (nearest rank); 0 if there are
 * no values.
 */
export function quantile(values: number[], part: number): number {
  const rank = Math.max(1, Math.ceil(values.length * part));
  return values.toSorted((a, b) => a - b)[rank - 1] ?? 0;
}
