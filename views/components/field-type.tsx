/** The types of fields as pages show them: a name, as Airtable's own pages write it, and an icon. */
import type { ColumnSpec } from "../../core/replica";
import type { FieldType } from "../../core/source";

/** As `assets/style/field-icons.css` draws them. */
type Picture =
  | "button"
  | "check"
  | "choice"
  | "choices"
  | "computed"
  | "contact"
  | "date"
  | "files"
  | "links"
  | "lines"
  | "number"
  | "person"
  | "star"
  | "text";

const TYPES: Record<FieldType, [name: string, picture: Picture]> = {
  ai_text: ["AI text", "lines"],
  attachment: ["Attachment", "files"],
  autonumber: ["Autonumber", "number"],
  barcode: ["Barcode", "lines"],
  button: ["Button", "button"],
  checkbox: ["Checkbox", "check"],
  collaborator: ["User", "person"],
  collaborators: ["Users", "person"],
  count: ["Count", "computed"],
  created_by: ["Created by", "person"],
  created_time: ["Created time", "date"],
  currency: ["Currency", "number"],
  date: ["Date", "date"],
  date_time: ["Date and time", "date"],
  duration: ["Duration", "number"],
  email: ["Email", "contact"],
  external_sync_source: ["Sync source", "choice"],
  formula: ["Formula", "computed"],
  hashed: ["Hashed", "text"],
  last_modified_by: ["Last modified by", "person"],
  last_modified_time: ["Last modified time", "date"],
  links: ["Link to another record", "links"],
  long_text: ["Long text", "lines"],
  lookup: ["Lookup", "computed"],
  multiple_select: ["Multiple select", "choices"],
  number: ["Number", "number"],
  percent: ["Percent", "number"],
  phone: ["Phone number", "contact"],
  rating: ["Rating", "star"],
  rich_text: ["Rich text", "lines"],
  rollup: ["Rollup", "computed"],
  single_select: ["Single select", "choice"],
  text: ["Single line text", "text"],
  url: ["URL", "contact"],
  unknown: ["Unknown", "text"],
};

/**
 * An icon for the type. It repeats what a title or the text next to it says, so screen readers skip it.
 *
 * @param props.type undefined: a column that is of no field
 */
export function FieldIcon({ type = "text" }: { type?: FieldType | undefined }) {
  return <span class="field-icon" data-picture={TYPES[type][1]} aria-hidden="true" />;
}

/** `Rollup of numbers`, `Single select`. */
export function fieldTypeName({
  type,
  result,
  sourceType,
}: Pick<ColumnSpec, "type" | "result" | "sourceType">): string {
  if (type === "unknown") return sourceType;
  return result && result !== type && result !== "unknown"
    ? `${TYPES[type][0]} (${TYPES[result][0].toLowerCase()})`
    : TYPES[type][0];
}
