/** Names of field types, as Airtable's own pages write them. */
import type { ColumnSpec } from "../../core/replica";
import type { FieldType } from "../../core/source";

const NAMES: Record<FieldType, string> = {
  ai_text: "AI text",
  attachment: "Attachment",
  autonumber: "Autonumber",
  barcode: "Barcode",
  button: "Button",
  checkbox: "Checkbox",
  collaborator: "User",
  collaborators: "Users",
  count: "Count",
  created_by: "Created by",
  created_time: "Created time",
  currency: "Currency",
  date: "Date",
  date_time: "Date and time",
  duration: "Duration",
  email: "Email",
  external_sync_source: "Sync source",
  formula: "Formula",
  hashed: "Hashed",
  last_modified_by: "Last modified by",
  last_modified_time: "Last modified time",
  links: "Link to another record",
  long_text: "Long text",
  lookup: "Lookup",
  multiple_select: "Multiple select",
  number: "Number",
  percent: "Percent",
  phone: "Phone number",
  rating: "Rating",
  rich_text: "Rich text",
  rollup: "Rollup",
  single_select: "Single select",
  text: "Single line text",
  url: "URL",
  unknown: "Unknown",
};

/** `Rollup of numbers`, `Single select`. */
export function fieldTypeName({
  type,
  result,
  sourceType,
}: Pick<ColumnSpec, "type" | "result" | "sourceType">): string {
  if (type === "unknown") return sourceType;
  return result && result !== type && result !== "unknown"
    ? `${NAMES[type]} (${NAMES[result].toLowerCase()})`
    : NAMES[type];
}
