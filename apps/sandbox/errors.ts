/**
 * The API's error answers: status and body exactly as the reference specifies them.
 */

/** An error answer. Thrown anywhere below the router, which sends it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}

/** `{"error":{"type","message"}}`, without the message where the real service sends none. */
export function apiError(status: number, type: string, message?: string): ApiError {
  return new ApiError(status, { error: message === undefined ? { type } : { type, message } });
}

export const unauthenticated = () => apiError(401, "AUTHENTICATION_REQUIRED", "Authentication required");

export const malformedToken = () => apiError(401, "UNAUTHORIZED", "Invalid authentication token");

export const permissionsOrModelNotFound = () =>
  apiError(
    403,
    "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND",
    "Invalid permissions, or the requested model was not found. Check that both your user and your token have " +
      "the required permissions, and that the model names and/or ids are correct.",
  );

export const notPermitted = (message = "You are not permitted to perform this operation") =>
  apiError(403, "INVALID_PERMISSIONS", message);

/** A path that matches no route, or that contains a malformed id. */
export const unroutable = () => new ApiError(404, { error: "NOT_FOUND" });

/** A well-formed id of something that does not exist. */
export const absent = () => apiError(404, "NOT_FOUND");

export const tableNotFound = (table: string, baseId: string) =>
  apiError(404, "TABLE_NOT_FOUND", `Could not find table ${table} in application ${baseId}`);

export const recordNotFound = () => apiError(404, "MODEL_ID_NOT_FOUND", "Record not found");

export const rowDoesNotExist = (recordId: string) =>
  apiError(422, "ROW_DOES_NOT_EXIST", `Record ID ${recordId} does not exist in this table`);

export const invalidRequest = (
  message = "Invalid request: parameter validation failed. Check your request data.",
) => apiError(422, "INVALID_REQUEST_UNKNOWN", message);

export const unknownField = (name: string) =>
  apiError(422, "UNKNOWN_FIELD_NAME", `Unknown field name: "${name}"`);

export const invalidValue = (message: string) => apiError(422, "INVALID_VALUE_FOR_COLUMN", message);

export const cannotAccept = (fieldName: string) =>
  invalidValue(`Field "${fieldName}" cannot accept the provided value`);

export const iteratorLost = () => apiError(422, "LIST_RECORDS_ITERATOR_NOT_AVAILABLE");

export const retriable = () =>
  apiError(
    503,
    "RETRIABLE_ERROR",
    "Server encountered an error while processing your request, and it is safe to retry the request",
  );

const RATE_LIMIT_MESSAGE = "Rate limit exceeded. Please try again later";

/** The throttle's answer, in the form now observed (`plural`) or the documented one (`object`). */
export function rateLimited(form: "plural" | "object"): ApiError {
  if (form === "object") return apiError(429, "RATE_LIMIT_REACHED", RATE_LIMIT_MESSAGE);
  return new ApiError(429, { errors: [{ error: "RATE_LIMIT_REACHED", message: RATE_LIMIT_MESSAGE }] });
}

const BILLING_LIMIT_MESSAGE =
  "API billing plan limit exceeded: the monthly maximum of API calls was reached.";

/** The answer beyond the month's cap, in the documented form or the one that is also reported (`plural`). */
export function billingLimit(form: "plural" | "object"): ApiError {
  const type = "PUBLIC_API_BILLING_LIMIT_EXCEEDED";
  if (form === "object") return apiError(429, type, BILLING_LIMIT_MESSAGE);
  return new ApiError(429, { errors: [{ error: type, message: BILLING_LIMIT_MESSAGE }] });
}

/** An invalid call of the control API: the message names the part and the remedy. */
export class ControlError extends Error {
  override readonly name = "ControlError";
}
