/** Prints the results of benches: aligned tables, and figures as ratios to their limits. */

/** Returns `value` relative to `limit` as text, with a mark if it exceeds it. */
export function ratio(value: number, limit: number): { text: string; isWithin: boolean } {
  const isWithin = value <= limit;
  return { text: `${value.toFixed(3)}${isWithin ? "" : " OVER THE LIMIT"}`, isWithin };
}

/** Prints rows under a header, with aligned columns. */
export function table(head: string[], rows: (string | number)[][]): void {
  const all = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  for (const row of all)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    );
}
