/**
 * Formats records: the JSON of one row in the shape that a request asks for.
 */
import { isStoredAttachment, URL_TOKEN } from "./attachments";
import { invalidRequest } from "./errors";
import {
  isEmptyCell,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
} from "./model";
import { booleanOf } from "./request";
import type { Sandbox } from "./sandbox";
import { displayValue } from "./text";

export interface Shape {
  /** Key `fields` by field id. */
  byId: boolean;
  /** Only these fields; all if absent. */
  fields?: SandboxField[];
  commentCount?: boolean;
  /** `cellFormat=string`. */
  text?: { timeZone: string; userLocale: string };
}

/** The record's JSON, with `URL_TOKEN` in place of the token in attachment URLs. */
export function recordTemplate(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  shape: Shape,
): string {
  const cells: string[] = [];
  for (const field of shape.fields ?? table.fields) {
    const value = cellOut(sandbox, base, table, row, field, shape, URL_TOKEN);
    if (value === undefined) continue;
    cells.push(`${JSON.stringify(shape.byId ? field.id : field.name)}:${JSON.stringify(value)}`);
  }
  const comments = shape.commentCount ? `"commentCount":${row.comments.length},` : "";
  return `{"id":"${row.id}","createdTime":"${row.createdTime}",${comments}"fields":{${cells.join(",")}}}`;
}

/** The record's JSON as it is sent. */
export function recordJson(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  shape: Shape,
): string {
  const text = recordTemplate(sandbox, base, table, row, shape);
  return text.includes(URL_TOKEN) ? text.replaceAll(URL_TOKEN, sandbox.attachments.token()) : text;
}

/** One cell in the API's form; undefined if it is left out. */
export function cellOut(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  field: SandboxField,
  shape: Shape,
  urlToken: string,
): unknown {
  const value = sandbox.computed.cell(base, table, row, field);
  if (isEmptyCell(value)) return undefined;
  if (shape.text) {
    if (field.type === "multipleRecordLinks") return sandbox.computed.text(base, table, row, field);
    return displayValue(value, field, shape.text) || undefined;
  }
  if (Array.isArray(value) && value.some(isStoredAttachment))
    return value.map((item) => sandbox.attachments.present(item, urlToken));
  return value;
}

/**
 * Reads the shape from `cellFormat`, `timeZone`, `userLocale` and `returnFieldsByFieldId`.
 *
 * @throws ApiError 422 for invalid values of these
 */
export function shapeOf(options: Record<string, unknown>): Shape {
  const byId = booleanOf(options.returnFieldsByFieldId);
  if (byId === undefined) throw invalidRequest();
  const format = options.cellFormat ?? "json";
  if (format === "json") return { byId };
  const { timeZone, userLocale } = options;
  if (format !== "string" || typeof timeZone !== "string" || typeof userLocale !== "string")
    throw invalidRequest();
  try {
    new Date().toLocaleString(userLocale, { timeZone: timeZone === "utc" ? "UTC" : timeZone });
  } catch {
    throw invalidRequest();
  }
  return { byId, text: { timeZone, userLocale } };
}
