/**
 * Interprets Airtable's answers: maps error envelopes and statuses to our codes, and parses JSON.
 *
 * Errors are distinguished by status and type, never by their text.
 */
import { cutText } from "../../cut-text";
import { BasetideError, type ErrorCode, type ErrorDetails, errorCodes } from "../../errors";
import { retryAfterMs } from "../../http";

/** Longest part of the source's own message that is included in ours, characters. */
const MAX_MESSAGE = 300;

/** The longest wait that an answer can ask of a sync, ms. */
const MOST_RETRY_AFTER_MS = 60_000;

/** Types of a 422 that are more specific than "invalid". */
const CODE_BY_TYPE: ReadonlyMap<string, ErrorCode> = new Map([
  ["LIST_RECORDS_ITERATOR_NOT_AVAILABLE", "source_iterator_lost"],
  ["UNKNOWN_FIELD_NAME", "source_schema_changed"],
  ["TABLE_NOT_FOUND", "source_schema_changed"],
  ["VIEW_NAME_NOT_FOUND", "source_schema_changed"],
  ["VIEW_ID_NOT_FOUND", "source_schema_changed"],
  // Ids in the path that do not belong together: a table that is not, or no longer, in this base.
  ["FAILED_STATE_CHECK", "source_schema_changed"],
]);
/** The month's call limit is used up. */
export const BILLING_LIMIT = "PUBLIC_API_BILLING_LIMIT_EXCEEDED";

/** Returns the error for an answer whose status is not 200. */
export function refusedCall(status: number, headers: Headers, body: Buffer): BasetideError {
  const { type, message } = readEnvelope(body);
  const code = codeOf(status, type);
  const details: ErrorDetails = { status };
  if (type !== undefined) details.type = type;
  const waitMs = retryAfterMs(headers.get("retry-after"), MOST_RETRY_AFTER_MS);
  if (waitMs !== undefined) details.retryAfterMs = waitMs;
  const said = [String(status), type].filter(Boolean).join(" ") + (message ? `: ${message}` : "");
  return new BasetideError(
    code,
    `Airtable answered ${said}${/[.!?]$/.test(said) ? "" : "."} ${errorCodes[code]}`,
    {
      details,
    },
  );
}

function codeOf(status: number, type: string | undefined): ErrorCode {
  if (status === 401) return "source_key_refused";
  if (status === 403) return "source_forbidden";
  if (status === 404) return "source_not_found";
  if (status === 429) return type === BILLING_LIMIT ? "source_billing_limit" : "source_rate_limited";
  if (status === 422) return CODE_BY_TYPE.get(type ?? "") ?? "source_rejected";
  if (status >= 500) return "source_unavailable";
  return status >= 400 ? "source_rejected" : "source_bad_answer";
}

/**
 * Returns the type and message of an error body: `{error: {type, message?}}`, `{error: "TYPE"}` or `{errors: [{error:
 * "TYPE", message?}]}`; neither for any other body.
 */
function readEnvelope(body: Buffer): { type?: string | undefined; message?: string | undefined } {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return {};
  }
  const error = part(value, "error") ?? part(part(value, "errors"), "0");
  return {
    type: text(error) ?? text(part(error, "type")) ?? text(part(error, "error")),
    message: text(part(error, "message")),
  };
}

function part(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

function text(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return value.length > MAX_MESSAGE ? `${cutText(value, MAX_MESSAGE)}…` : value;
}

/** @throws BasetideError `source_bad_answer` if the body of a 200 is not JSON */
export function parseAnswer(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw new BasetideError(
      "source_bad_answer",
      `Airtable answered 200 with ${body.length} bytes that are not JSON`,
      {
        cause,
      },
    );
  }
}
