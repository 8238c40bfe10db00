/** Selects the errors that a form shows next to its input. */
import { type ErrorCode, httpStatus, isBasetideError } from "../../core/errors";

/** Errors that no other input would fix. */
const notForForms = new Set<ErrorCode>(["unauthorized", "forbidden", "internal", "control_unavailable"]);

/** Syncs are repeated by themselves, what a form asks for is not. */
const REPEATED = "Basetide retries automatically.";

export interface FormError {
  code: ErrorCode;
  message: string;
  status: number;
}

type FormResult<Value> = { value: Value; failed?: undefined } | { value?: undefined; failed: FormError };

/** Returns the result of `work`, or its error that the form shows. @throws any other error */
export async function formResultOf<Value>(work: () => Promise<Value>): Promise<FormResult<Value>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!isBasetideError(error) || notForForms.has(error.code)) throw error;
    const message = error.message.replace(REPEATED, "Try again.");
    return { failed: { code: error.code, message, status: httpStatus[error.code] } };
  }
}
