/**
 * Converts errors to answers: `{"error":{"code","message","request_id"}}` with the status of `httpStatus`. For an
 * internal error the caller gets only a code and the request's id; the log gets the rest.
 */
import { randomUUID } from "node:crypto";
import type { ValidationError } from "elysia";
import { BasetideError, type ErrorCode, httpStatus } from "../../errors";
import type { Logger } from "../../log";
import { asControlError } from "../../postgres";
import { requestId } from "../../request-id";
import { pathOf } from "..";

/** Maximum number of invalid parts in one message; the caller finds the others on the next attempt. */
const MAX_PARTS = 5;

/** @param code Elysia's name for errors of its own */
export function answerError(log: Logger, request: Request, error: unknown, code: string | number): Response {
  const { status, retryAfterSeconds, allow, ...told } = explainError(log, request, error, code);
  const headers = new Headers({ "x-request-id": told.requestId });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  if (allow !== undefined) headers.set("allow", allow);
  return Response.json(
    { error: { code: told.code, message: told.message, request_id: told.requestId } },
    { status, headers },
  );
}

export interface ErrorForCaller {
  code: ErrorCode;
  status: number;
  message: string;
  /** Identifies the request in the log. */
  requestId: string;
  /** When a retry makes sense, if known. */
  retryAfterSeconds?: number;
  /** The methods of the address, for a request with another one. */
  allow?: string;
}

/** Returns what the caller may know about an error; the log gets the rest. */
export function explainError(
  log: Logger,
  request: Request,
  error: unknown,
  code: string | number,
): ErrorForCaller {
  const id = requestId() ?? randomUUID();
  const known = toBasetideError(error, code);
  const status = httpStatus[known.code];
  const facts = {
    requestId: id,
    method: request.method,
    path: pathOf(request),
    code: known.code,
  };
  if (status >= 500) log.error({ ...facts, error: loggable(error) }, "request failed");
  else log.debug({ ...facts, detail: known.message }, "request refused");
  const message =
    known.code === "internal"
      ? "Internal error in Basetide. The log has the details under the request id"
      : known.message;
  const { retryAfterSeconds, allow } = known.details;
  return {
    code: known.code,
    status,
    message,
    requestId: id,
    ...(typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {}),
    ...(typeof allow === "string" ? { allow } : {}),
  };
}

/** A failed validation contains the whole value, even of an answer: it may include a password. */
function loggable(error: unknown): unknown {
  return isValidationError(error) ? new Error(describe(error)) : error;
}

/** By its code: processes without Elysia need not keep it in memory. */
function isValidationError(error: unknown): error is ValidationError {
  return error instanceof Error && "code" in error && error.code === "VALIDATION";
}

function toBasetideError(error: unknown, code: string | number): BasetideError {
  if (error instanceof BasetideError) return error;
  // The library wraps the error of a body that could not be received.
  if (code === "PARSE" && error instanceof Error && error.cause instanceof BasetideError) return error.cause;
  if (isValidationError(error) && error.type !== "response") {
    return new BasetideError("invalid_request", describe(error), { cause: error });
  }
  if (code === "PARSE") return new BasetideError("invalid_request", "The body is not JSON", { cause: error });
  if (code === "NOT_FOUND")
    return new BasetideError("not_found", "This address does not exist", { cause: error });
  return asControlError(error);
}

/** `body: /settings/turbo: Expected boolean; …`: the first invalid parts, each once, and never the values sent. */
function describe(error: ValidationError): string {
  const parts = new Map<string, string>();
  for (const issue of error.all) {
    const path = "path" in issue && issue.path ? issue.path : "";
    // A missing property is also reported as a value of the wrong type.
    if (parts.has(path)) continue;
    const message = "message" in issue ? issue.message : "Invalid form";
    const told = message === "Expected union value" ? "Expected one of the allowed forms" : message;
    parts.set(path, path === "" ? told : `${path}: ${told}`);
  }
  const where = error.type === "property" ? "query" : error.type;
  return `${where}: ${[...parts.values()].slice(0, MAX_PARTS).join("; ")}`;
}
