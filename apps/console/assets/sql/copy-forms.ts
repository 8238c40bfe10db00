/** Writes rows of a result as CSV, JSON and Markdown. Values are Postgres' texts. */
import { parse } from "postgres-array";
import { csvCell, csvHeader, csvLine } from "../../../../core/csv";

interface Column {
  name: string;
  /** Empty for a type that is not Postgres' own. */
  type: string;
  isNumber: boolean;
}

type Row = (string | null)[];

export function csvOf(columns: Column[], rows: Row[]): string {
  const lines = rows.map((row) =>
    csvLine(row.map((value, at) => csvCell(value, columns[at]!.isNumber ? "number" : "text"))),
  );
  return csvHeader(columns.map(({ name }) => name)) + lines.join("");
}

/** An array of objects. Numbers keep all their digits; of columns with one name, the last one wins, as in any JSON. */
export function jsonOf(columns: Column[], rows: Row[]): string {
  const lines = rows.map((row) => {
    const fields = row.map(
      (value, at) => `${JSON.stringify(columns[at]!.name)}: ${jsonValue(value, columns[at]!.type)}`,
    );
    return `  {${fields.join(", ")}}`;
  });
  return lines.length === 0 ? "[]\n" : `[\n${lines.join(",\n")}\n]\n`;
}

export function markdownOf(columns: Column[], rows: Row[]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  const escaped = (text: string) => text.replaceAll(/[\\|]/g, "\\$&").replaceAll(/\r?\n|\r/g, "<br>");
  return [
    line(columns.map(({ name }) => escaped(name))),
    line(columns.map(({ isNumber }) => (isNumber ? "---:" : "---"))),
    ...rows.map((row) => line(row.map((value) => escaped(value ?? "")))),
  ].join("");
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const NUMBERS = ["smallint", "integer", "bigint", "numeric", "real", "double", "oid"];

function jsonValue(value: string | null, type: string): string {
  if (value === null) return "null";
  if (type.endsWith("[]")) return jsonArray(value, type.slice(0, -2));
  if (type === "json" || type === "jsonb") return value;
  if (type === "boolean") return value === "t" ? "true" : "false";
  // "NaN" and "Infinity" are numbers of Postgres only.
  return NUMBERS.includes(type) && JSON_NUMBER.test(value) ? value : JSON.stringify(value);
}

type Nested = string | null | Nested[];

function jsonArray(value: string, type: string): string {
  const write = (part: Nested): string =>
    Array.isArray(part) ? `[${part.map(write).join(", ")}]` : jsonValue(part, type);
  return write(parse(value, (element) => element) as Nested);
}
