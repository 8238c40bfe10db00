/**
 * Prints the results of commands: one JSON document with `--json`, else text. In both forms, no character of a value
 * can move the terminal's cursor or change the direction of the text.
 */
import { printable, printableJson, printableValue } from "../../core/terminal";

type Rows = Record<string, string | number | boolean | null>[];

/** Prints `value` as JSON, or as `text` formats it. */
export function print<T>(value: T, isJson: boolean, text: (value: T) => string): void {
  console.log(isJson ? printableJson(JSON.stringify(value, null, 2)) : printable(text(value)));
}

/** Formats rows as aligned columns with their names as the header. */
export function table(rows: Rows, empty: string): string {
  const [first] = rows;
  if (!first) return empty;
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => printableValue(String(row[name] ?? "-"))))];
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

/** Formats `name: value` lines. */
export function facts(values: Rows[number]): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${printableValue(String(value ?? "-"))}`)
    .join("\n");
}
