/** How benches print: aligned tables, and figures as ratios against their limit. */

/** `value` against `limit`: as text, with a mark where it is over. */
export function ratio(value: number, limit: number): { text: string; isWithin: boolean } {
  const isWithin = value <= limit;
  return { text: `${value.toFixed(3)}${isWithin ? "" : " OVER THE LIMIT"}`, isWithin };
}

/** Prints rows under a head, columns aligned. */
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
