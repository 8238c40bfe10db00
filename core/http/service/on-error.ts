/**
 * The one place where an error becomes an answer: `{"error":{"code","message","request_id"}}` with the status of
 * `httpStatus`. Of a fault of ours the caller learns a code and the request's id, the log the rest.
 */
import { randomUUID } from "node:crypto";
import { ValidationError } from "elysia";
import { BasetideError, type ErrorCode, httpStatus } from "../../errors";
import type { Logger } from "../../log";
import { asControlError } from "../../postgres";
import { requestId } from "../../request-id";
import { pathOf } from "..";

/** Wrong parts of a request that are named; the rest is found at the next try. */
const MAX_PARTS = 5;

/** @param code Elysia's word for errors of its own */
export function answerError(log: Logger, request: Request, error: unknown, code: string | number): Response {
  const { status, retryAfterSeconds, ...told } = explainError(log, request, error, code);
  const headers = new Headers({ "x-request-id": told.requestId });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  return Response.json(
    { error: { code: told.code, message: told.message, request_id: told.requestId } },
    { status, headers },
  );
}

export interface ErrorForCaller {
  code: ErrorCode;
  status: number;
  message: string;
  /** By which the log knows it. */
  requestId: string;
  /** When it is worth trying again, where that is known. */
  retryAfterSeconds?: number;
}

/** What the caller may know of an error; the log gets the rest. */
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
      ? "A fault in Basetide itself; the log has it under this request's id"
      : known.message;
  const { retryAfterSeconds } = known.details;
  return {
    code: known.code,
    status,
    message,
    requestId: id,
    ...(typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {}),
  };
}

/** A failed validation holds the whole value, of an answer too: that may be a password. */
function loggable(error: unknown): unknown {
  return error instanceof ValidationError ? new Error(describe(error)) : error;
}

function toBasetideError(error: unknown, code: string | number): BasetideError {
  if (error instanceof BasetideError) return error;
  if (error instanceof ValidationError && error.type !== "response") {
    return new BasetideError("invalid_request", describe(error), { cause: error });
  }
  if (code === "PARSE") return new BasetideError("invalid_request", "The body is not JSON", { cause: error });
  if (code === "NOT_FOUND")
    return new BasetideError("not_found", "There is no such address", { cause: error });
  return asControlError(error);
}

/** `body: /settings/turbo: Expected boolean; …`: the first wrong parts, and never what was sent. */
function describe(error: ValidationError): string {
  const parts = error.all.map((issue) => {
    const path = "path" in issue && issue.path ? `${issue.path}: ` : "";
    const message = "message" in issue ? issue.message : "Not of the right form";
    return path + (message === "Expected union value" ? "Expected one of the allowed forms" : message);
  });
  const where = error.type === "property" ? "query" : error.type;
  return `${where}: ${[...new Set(parts)].slice(0, MAX_PARTS).join("; ")}`;
}
