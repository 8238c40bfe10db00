/**
 * Cells that change without anybody changing a record, which no feed tells of: those that look at the time, and the
 * signed URLs of attachments, which end.
 */
import type { SourceField, SourceSchema } from "../types";

const ASKS_THE_TIME = /\b(NOW|TODAY|FROMNOW|TONOW)\s*\(/i;

/**
 * Has the base fields whose cells change by themselves? What looks at such a field has such a field beside it.
 *
 * @param options.hasLastingUrls the source's URLs of attachments are not kept: that they end is nobody's concern
 */
export function changesByItself(
  { tables }: SourceSchema,
  { hasLastingUrls } = { hasLastingUrls: false },
): boolean {
  return tables.some(({ fields }) =>
    fields.some((field) => (field.type === "attachment" ? !hasLastingUrls : asksTheTime(field))),
  );
}

function asksTheTime({ type, options }: SourceField): boolean {
  return type === "formula" && typeof options?.formula === "string" && ASKS_THE_TIME.test(options.formula);
}
