/**
 * The expected contents of a replica, derived only from the source's JSON: independent of the product's naming, type
 * map and cell readers. Written from the specification's table, wire type by wire type.
 */

export interface WireField {
  id: string;
  name: string;
  type: string;
  options?: { result?: { type: string } | null } | null;
}
export interface WireTable {
  id: string;
  name: string;
  fields: WireField[];
}
export interface WireRecord {
  id: string;
  createdTime: string;
  /** By field id. */
  fields: Record<string, unknown>;
}

const ARRAYS = [
  "multipleRecordLinks",
  "multipleLookupValues",
  "multipleSelects",
  "multipleAttachments",
  "multipleCollaborators",
  "singleCollaborator",
];
const NUMBERS = ["number", "currency", "percent", "rating", "count", "autoNumber"];
const TIMES = ["dateTime", "createdTime", "lastModifiedTime"];

/** The column's type, as information_schema names it. */
export function expectedColumnType(field: WireField): string {
  if (ARRAYS.includes(field.type)) return "ARRAY";
  if (NUMBERS.includes(field.type) || field.type === "barcode") return "numeric";
  if (field.type === "rollup") {
    const result = field.options?.result?.type;
    return result === undefined || NUMBERS.includes(result) || result === "duration" ? "numeric" : "text";
  }
  if (field.type === "checkbox") return "boolean";
  if (field.type === "date") return "date";
  if (TIMES.includes(field.type)) return "timestamp without time zone";
  return "text";
}

/**
 * The value that `to_json` of the column returns, or `undefined` if the cell cannot be represented (NULL, and an
 * issue).
 */
export function expectedValue(field: WireField, cell: unknown): unknown {
  const column = expectedColumnType(field);
  if (column === "boolean") return cell === true;
  if (cell === undefined || cell === null) return null;
  switch (column) {
    case "ARRAY":
      return (Array.isArray(cell) ? cell.flat() : [cell]).map(elementText);
    case "numeric":
      if (field.type === "barcode") return Number((cell as { text: string }).text);
      return typeof cell === "number" ? cell : undefined;
    case "date":
      return String(cell).slice(0, 10);
    case "timestamp without time zone":
      return timestampJson(String(cell));
    default:
      return scalarText(field, cell);
  }
}

function scalarText(field: WireField, cell: unknown): unknown {
  if (field.type === "duration") return durationText(cell as number);
  if (field.type === "createdBy" || field.type === "lastModifiedBy") return elementText(cell);
  if (field.type === "button") {
    const { url, label } = cell as { url?: string | null; label?: string };
    return url ?? label ?? null;
  }
  if (field.type === "aiText" && typeof (cell as { value?: unknown }).value === "string") {
    return (cell as { value: string }).value;
  }
  if (typeof cell === "object" && ("error" in (cell as object) || "specialValue" in (cell as object)))
    return undefined;
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

function elementText(element: unknown): string | null {
  if (element === null || typeof element !== "object") return element === null ? null : String(element);
  const fields = element as Record<string, unknown>;
  if ("error" in fields || "specialValue" in fields) return null;
  for (const key of ["url", "email", "name", "text", "id"]) {
    if (typeof fields[key] === "string") return fields[key];
  }
  return JSON.stringify(element);
}

/** Postgres prints a timestamp's fraction without trailing zeros. */
function timestampJson(cell: string): string {
  return new Date(cell).toISOString().replace(/\.?0*Z$/, "");
}

function durationText(seconds: number): string {
  const all = Math.round(Math.abs(seconds) * 1000);
  const pad = (value: number, digits = 2) => String(value).padStart(digits, "0");
  const whole = Math.floor(all / 1000);
  const fraction = all % 1000 === 0 ? "" : `.${pad(all % 1000, 3).replace(/0+$/, "")}`;
  const text = `${Math.floor(whole / 3600)}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}${fraction}`;
  return seconds < 0 ? `-${text}` : text;
}
