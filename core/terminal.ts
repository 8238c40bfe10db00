/**
 * What the command lines print and ask. Text from others is made safe for a terminal: control characters move its cursor and change its title, and bidi
 * controls change the displayed order of a line (customers choose the names of bases, tables and fields).
 */

const UNSAFE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Returns `text` with all such characters except line breaks written as escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (char) => (char === "\n" ? char : asEscape(char)));
}

/** The same for a value within a line: line breaks are escaped, too. */
export function printableValue(text: string): string {
  return text.replace(UNSAFE, asEscape);
}

/** Returns JSON that parses to the same value: `JSON.stringify` does not escape characters above U+001F. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (char) => (char < " " ? char : asEscape(char)));
}

function asEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export type OutputRow = Record<string, string | number | boolean | null | undefined>;

/** Prints one JSON document, or `value` as `text` formats it. */
export function printResult<Value>(value: Value, isJson: boolean, text: (value: Value) => string): void {
  console.log(isJson ? printableJson(JSON.stringify(value, null, 2)) : printable(text(value)));
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
  if (value === null || value === undefined || value === "") return "-";
  return printableValue(String(value).replaceAll("\n", " "));
}

/** Asks before a command changes something that cannot be undone. False without a terminal. */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const { createInterface } = await import("node:readline/promises");
  const asker = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // Ctrl-C and the end of the input are a no.
    const closed = new Promise<string>((resolve) => asker.once("close", () => resolve("")));
    const answer = await Promise.race([asker.question(`${question} [y/N] `).catch(() => ""), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    asker.close();
  }
}
