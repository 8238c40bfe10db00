/** TypeScript: the cells of a record, as Airtable's API returns them. */
import type { FieldType } from "../../source";
import type { TypedColumn } from "./model";
import { tsChoice } from "./ts-parts";

export const CELL_TYPES = `/** A record as Airtable's API returns it. */
export interface AirtableRecord<Id extends string, Fields> {
  id: Id;
  /** ISO 8601, UTC. */
  createdTime: string;
  fields: Fields;
}

export interface AirtableAttachment {
  id: string;
  url: string;
  filename: string;
  /** In bytes. */
  size?: number;
  /** MIME type. */
  type?: string;
  width?: number;
  height?: number;
  thumbnails?: Record<string, { url: string; width: number; height: number }>;
}

export interface AirtableCollaborator {
  id: string;
  email?: string;
  name?: string;
}

export interface AirtableAiText {
  state: "empty" | "loading" | "generated" | "error" | UnknownChoice;
  isStale: boolean;
  value: string | null;
  errorType?: string;
}

/** In place of the value of a computation that failed. */
export type AirtableFailure = { error: string } | { specialValue: string };
`;

const CELLS: Record<FieldType, string> = {
  ai_text: "AirtableAiText",
  attachment: "AirtableAttachment[]",
  autonumber: "number",
  barcode: "{ text: string; type?: string | null }",
  button: "{ label: string; url?: string | null }",
  checkbox: "boolean",
  collaborator: "AirtableCollaborator",
  collaborators: "AirtableCollaborator[]",
  count: "number",
  created_by: "AirtableCollaborator",
  created_time: "string",
  currency: "number",
  date: "string",
  date_time: "string",
  duration: "number",
  email: "string",
  external_sync_source: "string",
  formula: "string | number | boolean",
  // The copy does not say what it was.
  hashed: "unknown",
  last_modified_by: "AirtableCollaborator",
  last_modified_time: "string",
  links: "string[]",
  long_text: "string",
  lookup: "unknown[]",
  multiple_select: "string[]",
  number: "number",
  percent: "number",
  phone: "string",
  rating: "number",
  rich_text: "string",
  rollup: "string | number | boolean",
  single_select: "string",
  text: "string",
  unknown: "unknown",
  url: "string",
};

/** Results of computations that are a plain value; any other may be a list of values. */
const PLAIN = new Set(["string", "number", "boolean"]);

export function tsCellType({ spec, linked, choices }: TypedColumn): string {
  const { type, result } = spec;
  if (linked) return `${linked.typeName}Id[]`;
  if (choices) return type === "multiple_select" ? `(${tsChoice(choices)})[]` : tsChoice(choices);
  if (type === "formula" || type === "rollup") return `${resultType(result, CELLS[type])} | AirtableFailure`;
  if (type === "lookup") return `(${resultType(result, "unknown")} | null)[]`;
  return CELLS[type];
}

function resultType(result: FieldType | undefined, otherwise: string): string {
  const type = result === undefined ? otherwise : CELLS[result];
  return PLAIN.has(type) ? type : otherwise;
}
