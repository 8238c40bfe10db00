/** The SQLSTATEs of what the source says about a write, as the triggers raise them. */

/** An error of a SQL transaction. */
export interface SqlError {
  sqlstate: string;
  message: string;
  detail?: string | undefined;
  hint?: string | undefined;
  /** The source's ids of the table and the field. */
  table?: string | undefined;
  field?: string | undefined;
}

const TYPECAST = "`set basetide.typecast = on` lets Airtable add the option.";

/** By the source's type of error. */
const byType: Record<string, { sqlstate: string; hint?: string }> = {
  AUTHENTICATION_REQUIRED: { sqlstate: "28000", hint: "Airtable does not accept the API key of the base." },
  INVALID_ATTACHMENT_OBJECT: { sqlstate: "22023" },
  INVALID_MULTIPLE_CHOICE_OPTIONS: { sqlstate: "23514", hint: TYPECAST },
  INVALID_PERMISSIONS: { sqlstate: "42501" },
  INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND: { sqlstate: "42501" },
  INVALID_RECORDS: { sqlstate: "22023" },
  INVALID_REQUEST_BODY: { sqlstate: "22023" },
  INVALID_REQUEST_MISSING_FIELDS: { sqlstate: "22023" },
  INVALID_REQUEST_UNKNOWN: { sqlstate: "22023" },
  INVALID_VALUE_FOR_COLUMN: { sqlstate: "22023" },
  MODEL_ID_NOT_FOUND: { sqlstate: "P0002" },
  NOT_FOUND: { sqlstate: "P0002" },
  PUBLIC_API_BILLING_LIMIT_EXCEEDED: { sqlstate: "53400" },
  RATE_LIMIT_REACHED: { sqlstate: "53400" },
  ROW_DOES_NOT_EXIST: { sqlstate: "P0002" },
  TABLE_NOT_FOUND: { sqlstate: "42P01" },
  UNKNOWN_FIELD_NAME: { sqlstate: "42703" },
  UNAUTHORIZED: { sqlstate: "28000" },
};

/** Where the type is not known. */
const byStatus: Record<number, string> = {
  400: "22023",
  401: "28000",
  403: "42501",
  404: "P0002",
  413: "54000",
  422: "22023",
  429: "53400",
};

const COMPUTED = /because the field is computed/;

export function refusalState(
  status: number,
  type: string,
  message: string,
): { sqlstate: string; hint?: string } {
  if (COMPUTED.test(message)) return { sqlstate: "428C9" };
  return byType[type] ?? { sqlstate: byStatus[status] ?? "38000" };
}

/** Of a write that was not sent: the queue is full, the budget is spent, or the source cannot be asked. */
export function unsentState(status: number, type: string): string {
  if (type in byType || status === 429 || type === "PROXY_BUSY")
    return refusalState(status, type, "").sqlstate;
  return "08006";
}
