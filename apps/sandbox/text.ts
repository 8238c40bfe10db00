/**
 * Cells as displayed text: for `cellFormat=string`, for names of linked records, for sorting and type changes.
 *
 * Links are not handled here, because their text belongs to another table: see `Computed.text`.
 */
import type { SandboxField } from "./model";

/** Members that represent an object cell; the first that exists wins. */
const TEXT_MEMBERS = ["name", "text", "label", "filename", "value", "email", "id", "error", "specialValue"];

/** @param locale a `userLocale`, for dates; without one they stay ISO */
export function displayValue(
  value: unknown,
  field: SandboxField,
  locale?: { timeZone: string; userLocale: string },
): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map((one) => displayValue(one, field, locale)).join(", ");
  if (typeof value === "object") {
    const member = TEXT_MEMBERS.map((name) => (value as Record<string, unknown>)[name]).find(
      (one) => typeof one === "string",
    );
    return (member as string | undefined) ?? JSON.stringify(value);
  }
  if (value === true) return "checked";
  if (typeof value === "number") return numberText(value, field);
  return locale ? dateText(String(value), locale) : String(value);
}

function numberText(value: number, field: SandboxField): string {
  const precision = typeof field.options?.precision === "number" ? field.options.precision : undefined;
  if (field.type === "percent") return `${(value * 100).toFixed(precision ?? 0)}%`;
  if (field.type === "currency")
    return `${String(field.options?.symbol ?? "$")}${value.toFixed(precision ?? 2)}`;
  if (field.type === "duration") return durationText(value);
  return precision === undefined ? String(value) : value.toFixed(precision);
}

/** Seconds as `h:mm:ss`. */
function durationText(seconds: number): string {
  const whole = Math.abs(Math.trunc(seconds));
  const part = (unit: number) => String(unit).padStart(2, "0");
  const text = `${Math.floor(whole / 3600)}:${part(Math.floor(whole / 60) % 60)}:${part(whole % 60)}`;
  return seconds < 0 ? `-${text}` : text;
}

const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/;
const ISO_DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

function dateText(text: string, locale: { timeZone: string; userLocale: string }): string {
  if (ISO_DATE.test(text)) return new Date(text).toLocaleDateString(locale.userLocale, { timeZone: "UTC" });
  if (!ISO_DATE_TIME.test(text)) return text;
  const timeZone = locale.timeZone === "utc" ? "UTC" : locale.timeZone;
  return new Date(text).toLocaleString(locale.userLocale, {
    timeZone,
    dateStyle: "short",
    timeStyle: "short",
  });
}
