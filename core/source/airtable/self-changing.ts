/**
 * Detects cells that change although no user changes a record, which no feed reports: cells that depend on the time,
 * and the signed URLs of attachments, which expire.
 */
import type { SourceField, SourceSchema } from "../types";

const ASKS_THE_TIME = /\b(NOW|TODAY|FROMNOW|TONOW)\s*\(/i;

/**
 * Does the base have fields whose cells change by themselves? A field that reads such a field implies that the base has
 * one.
 *
 * @param options.hasLastingUrls the source's URLs of attachments are not stored, so their expiry does not matter
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
