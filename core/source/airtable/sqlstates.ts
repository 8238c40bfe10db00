/** What Airtable's types of errors are in SQL. */
import type { SqlRefusal } from "../dialect";
import { BILLING_LIMIT } from "./answers";

const TYPECAST = "`set basetide.typecast = on` lets Airtable add the option.";

const byType: Record<string, SqlRefusal> = {
  AUTHENTICATION_REQUIRED: { sqlstate: "28000", hint: "Airtable does not accept the API key of the base." },
  INVALID_ATTACHMENT_OBJECT: { sqlstate: "22023" },
  INVALID_MULTIPLE_CHOICE_OPTIONS: { sqlstate: "23514", hint: TYPECAST },
  INVALID_PERMISSIONS: { sqlstate: "42501" },
  INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND: { sqlstate: "42501" },
  INVALID_RECORD_ID: { sqlstate: "22023" },
  INVALID_RECORDS: { sqlstate: "22023" },
  INVALID_REQUEST_BODY: { sqlstate: "22023" },
  INVALID_REQUEST_MISSING_FIELDS: { sqlstate: "22023" },
  INVALID_REQUEST_UNKNOWN: { sqlstate: "22023" },
  INVALID_VALUE_FOR_COLUMN: { sqlstate: "22023" },
  MODEL_ID_NOT_FOUND: { sqlstate: "P0002" },
  NOT_FOUND: { sqlstate: "P0002" },
  [BILLING_LIMIT]: { sqlstate: "53400" },
  RATE_LIMIT_REACHED: { sqlstate: "53400" },
  ROW_DOES_NOT_EXIST: { sqlstate: "P0002" },
  TABLE_NOT_FOUND: { sqlstate: "42P01" },
  UNKNOWN_FIELD_NAME: { sqlstate: "42703" },
  UNAUTHORIZED: { sqlstate: "28000" },
};

const COMPUTED = /because the field is computed/;

/** @returns undefined if the type is not known */
export function sqlRefusalOf(type: string, message: string): SqlRefusal | undefined {
  return COMPUTED.test(message) ? { sqlstate: "428C9" } : byType[type];
}
