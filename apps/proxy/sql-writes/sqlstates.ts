/** The SQLSTATEs of what the source says about a write, as the triggers raise them. */
import { proxied, type SqlRefusal } from "../../../core/source";

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

export function refusalState(status: number, type: string, message: string): SqlRefusal {
  return proxied.dialect.sqlRefusalOf(type, message) ?? { sqlstate: byStatus[status] ?? "38000" };
}

/** Nothing was sent: the transaction can be repeated. */
export const UNSENT = "08006";

/** Of a write that was not sent: the queue is full, the budget is spent, or the source cannot be asked. */
export function unsentState(status: number, type: string): string {
  if (status === 429 || type === "PROXY_BUSY" || proxied.dialect.sqlRefusalOf(type, ""))
    return refusalState(status, type, "").sqlstate;
  return UNSENT;
}
