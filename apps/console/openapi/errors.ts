/** The errors of an operation: the 4xx answers that follow from its form, and those that its route names. */
import { type ErrorCode, errorCodes, httpStatus } from "../../../core/errors";
import type { ApiResponse, JsonSchema } from "../../../views/docs/openapi";

const TITLES: Record<number, string> = {
  401: "No valid API token",
  403: "The token's scopes, or the role of its creator, do not allow this",
  404: "Not found, or it belongs to another account",
  409: "The current state does not allow this",
  415: "The body is not JSON",
  422: "The request cannot be used",
  429: "Too many calls",
};

export const apiErrorSchema: JsonSchema = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message", "request_id"],
      properties: {
        code: {
          type: "string",
          description: "Stable name of the error: docs/errors has causes and remedies",
          enum: Object.keys(errorCodes),
        },
        message: { type: "string", description: "What happened and what to do, for people" },
        request_id: { type: "string", description: "Identifies the call in the log of the service" },
      },
    },
  },
};

/** The errors that every operation of this form has. */
export function usualErrors(form: { hasId: boolean; hasBody: boolean; hasQuery: boolean }): ErrorCode[] {
  return [
    "unauthorized",
    "forbidden",
    ...(form.hasId ? (["not_found"] as const) : []),
    ...(form.hasBody ? (["unsupported_media_type"] as const) : []),
    ...(form.hasBody || form.hasQuery ? (["invalid_request"] as const) : []),
    "rate_limited",
  ];
}

/** @returns the answers by status; one with several codes has an example of each */
export function errorResponses(codes: ErrorCode[]): Record<string, ApiResponse> {
  const byStatus = Map.groupBy(new Set(codes), (code) => httpStatus[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      {
        description: TITLES[status] ?? "The call failed",
        content: {
          "application/json": {
            schema: { $ref: "#/components/schemas/ApiError" },
            examples: Object.fromEntries(
              ofStatus.map((code) => [code, { summary: code, value: exampleError(code) }]),
            ),
          },
        },
      },
    ]),
  );
}

function exampleError(code: ErrorCode) {
  return {
    error: { code, message: errorCodes[code], request_id: "0b9d5c3e-6a1f-4f60-9a35-3d8d4a6f2c17" },
  };
}
