/** Types of fields whose cells can be written by SQL. */
import type { FieldType } from "../source";

export const WRITABLE_TYPES: ReadonlySet<FieldType> = new Set<FieldType>([
  "attachment",
  "barcode",
  "checkbox",
  "collaborator",
  "collaborators",
  "currency",
  "date",
  "date_time",
  "duration",
  "email",
  "links",
  "long_text",
  "multiple_select",
  "number",
  "percent",
  "phone",
  "rating",
  "rich_text",
  "single_select",
  "text",
  "url",
]);
