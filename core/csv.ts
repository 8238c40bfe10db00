/**
 * Rows as CSV (RFC 4180) for spreadsheets, which would run a text that begins like a formula: such a text gets a leading
 * apostrophe. Numbers, dates and check marks are of the database's own types and stay as they are.
 */

/** OWASP, "CSV Injection", with the full-width forms that some spreadsheets accept. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NEEDS_QUOTES = /[",\r\n]/;

export function csvLine(cells: readonly string[]): string {
  return `${cells.map(quote).join(",")}\r\n`;
}

/** The line of names: those of a query are anybody's text. */
export function csvHeader(names: readonly string[]): string {
  return csvLine(names.map(harmless));
}

/** A cell as the driver returned it in whole form. @param kind `text` and `list` are anybody's text */
export function csvCell(value: unknown, kind: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return harmless(value.map((element) => element ?? "").join(", "));
  return kind === "text" || kind === "list" ? harmless(String(value)) : String(value);
}

function harmless(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

function quote(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
