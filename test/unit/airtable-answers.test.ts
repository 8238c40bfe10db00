/** The error code of each refusal of the source. */
import { describe, expect, test } from "vitest";
import type { ErrorCode } from "../../core/errors";
import { refusedCall } from "../../core/source/airtable/answers";

const object = (type: string, message?: string) => JSON.stringify({ error: { type, message } });
const bare = (type: string) => JSON.stringify({ error: type });
const plural = (type: string, message?: string) => JSON.stringify({ errors: [{ error: type, message }] });

describe("a refusal", () => {
  test.each<[number, string, ErrorCode, string | undefined]>([
    [
      401,
      object("AUTHENTICATION_REQUIRED", "Authentication required"),
      "source_key_refused",
      "AUTHENTICATION_REQUIRED",
    ],
    [401, object("UNAUTHORIZED"), "source_key_refused", "UNAUTHORIZED"],
    [
      403,
      object("INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND"),
      "source_forbidden",
      "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND",
    ],
    [403, "<html>", "source_forbidden", undefined],
    [404, bare("NOT_FOUND"), "source_not_found", "NOT_FOUND"],
    [404, object("NOT_FOUND"), "source_not_found", "NOT_FOUND"],
    [404, object("TABLE_NOT_FOUND", "Could not find table"), "source_not_found", "TABLE_NOT_FOUND"],
    [404, object("MODEL_ID_NOT_FOUND"), "source_not_found", "MODEL_ID_NOT_FOUND"],
    [404, "", "source_not_found", undefined],
    [429, object("RATE_LIMIT_REACHED"), "source_rate_limited", "RATE_LIMIT_REACHED"],
    [429, plural("RATE_LIMIT_REACHED", "Rate limit exceeded"), "source_rate_limited", "RATE_LIMIT_REACHED"],
    [429, object("TOO_MANY_REQUESTS"), "source_rate_limited", "TOO_MANY_REQUESTS"],
    [429, "slow down", "source_rate_limited", undefined],
    [
      429,
      object("PUBLIC_API_BILLING_LIMIT_EXCEEDED"),
      "source_billing_limit",
      "PUBLIC_API_BILLING_LIMIT_EXCEEDED",
    ],
    [
      429,
      plural("PUBLIC_API_BILLING_LIMIT_EXCEEDED"),
      "source_billing_limit",
      "PUBLIC_API_BILLING_LIMIT_EXCEEDED",
    ],
    [
      422,
      object("LIST_RECORDS_ITERATOR_NOT_AVAILABLE"),
      "source_iterator_lost",
      "LIST_RECORDS_ITERATOR_NOT_AVAILABLE",
    ],
    [
      422,
      bare("LIST_RECORDS_ITERATOR_NOT_AVAILABLE"),
      "source_iterator_lost",
      "LIST_RECORDS_ITERATOR_NOT_AVAILABLE",
    ],
    [422, object("UNKNOWN_FIELD_NAME"), "source_schema_changed", "UNKNOWN_FIELD_NAME"],
    [422, object("TABLE_NOT_FOUND"), "source_schema_changed", "TABLE_NOT_FOUND"],
    [422, object("VIEW_NAME_NOT_FOUND"), "source_schema_changed", "VIEW_NAME_NOT_FOUND"],
    [422, object("VIEW_ID_NOT_FOUND"), "source_schema_changed", "VIEW_ID_NOT_FOUND"],
    [422, object("FAILED_STATE_CHECK"), "source_schema_changed", "FAILED_STATE_CHECK"],
    [422, object("INVALID_REQUEST_UNKNOWN"), "source_rejected", "INVALID_REQUEST_UNKNOWN"],
    [422, '{"error":null}', "source_rejected", undefined],
    [400, object("INVALID_REQUEST_BODY"), "source_rejected", "INVALID_REQUEST_BODY"],
    [413, "too large", "source_rejected", undefined],
    [500, "", "source_unavailable", undefined],
    [502, "<html>Bad gateway</html>", "source_unavailable", undefined],
    [503, object("RETRIABLE_ERROR"), "source_unavailable", "RETRIABLE_ERROR"],
    [302, "", "source_bad_answer", undefined],
    [204, "", "source_bad_answer", undefined],
  ])("%i %s is %s", (status, body, code, type) => {
    const error = refusedCall(status, new Headers(), Buffer.from(body));
    expect({ code: error.code, details: error.details }).toEqual({
      code,
      details: type === undefined ? { status } : { status, type },
    });
  });

  test("has the source's message, and the remedy", () => {
    const error = refusedCall(
      401,
      new Headers(),
      Buffer.from(object("AUTHENTICATION_REQUIRED", "Authentication required")),
    );
    expect(error.message).toBe(
      "Airtable answered 401 AUTHENTICATION_REQUIRED: Authentication required. " +
        "Airtable rejected the API key. Add a new key.",
    );
  });

  test("truncates a message that is too long", () => {
    const error = refusedCall(422, new Headers(), Buffer.from(object("INVALID", "x".repeat(10_000))));
    expect(error.message.length).toBeLessThan(500);
  });

  test.each([
    "null",
    "7",
    '"x"',
    "[]",
    '{"errors":[]}',
    '{"errors":{}}',
    '{"error":{"type":7}}',
    '{"error":[]}',
  ])("with the body %s has no type", (body) => {
    expect(refusedCall(429, new Headers(), Buffer.from(body)).details).toEqual({ status: 429 });
  });

  test("carries Retry-After in milliseconds, from seconds or a date", () => {
    const after = (value: string) =>
      refusedCall(503, new Headers({ "retry-after": value }), Buffer.alloc(0)).details.retryAfterMs;
    expect(after("2")).toBe(2_000);
    expect(after("0.5")).toBe(500);
    expect(after(new Date(Date.now() + 60_000).toUTCString())).toBeGreaterThan(50_000);
    expect(after(new Date(Date.now() - 60_000).toUTCString())).toBe(0);
    expect(after("soon")).toBeUndefined();
  });
});
