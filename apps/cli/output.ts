/** Prints results: one JSON document with `--json`, else text. */
import { escapeControls } from "./terminal";

export type OutputRow = Record<string, string | number | boolean | null | undefined>;

export function printResult<Value>(value: Value, isJson: boolean, text: (value: Value) => string): void {
  console.log(escapeControls(isJson ? JSON.stringify(value, null, 2) : text(value)));
}

/** Aligned columns under their names. */
export function formatTable(rows: OutputRow[], empty: string): string {
  const [first] = rows;
  if (!first) return empty;
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => oneLine(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** `name: value` lines. */
export function formatFacts(values: OutputRow): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${oneLine(value)}`)
    .join("\n");
}

function oneLine(value: OutputRow[string]): string {
  return value === null || value === undefined || value === "" ? "-" : String(value).replaceAll("\n", " ");
}
