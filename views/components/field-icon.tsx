/** An icon for the type of a field. It repeats what a title or the text next to it says, so screen readers skip it. */
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

const PICTURES: Record<FieldType, Picture> = {
  ai_text: "lines",
  attachment: "files",
  autonumber: "number",
  barcode: "lines",
  button: "button",
  checkbox: "check",
  collaborator: "person",
  collaborators: "person",
  count: "computed",
  created_by: "person",
  created_time: "date",
  currency: "number",
  date: "date",
  date_time: "date",
  duration: "number",
  email: "contact",
  external_sync_source: "choice",
  formula: "computed",
  hashed: "text",
  last_modified_by: "person",
  last_modified_time: "date",
  links: "links",
  long_text: "lines",
  lookup: "computed",
  multiple_select: "choices",
  number: "number",
  percent: "number",
  phone: "contact",
  rating: "star",
  rich_text: "lines",
  rollup: "computed",
  single_select: "choice",
  text: "text",
  url: "contact",
  unknown: "text",
};

/** @param props.type undefined: a column that is of no field */
export function FieldIcon({ type = "text" }: { type?: FieldType | undefined }) {
  return <span class="field-icon" data-picture={PICTURES[type]} aria-hidden="true" />;
}
