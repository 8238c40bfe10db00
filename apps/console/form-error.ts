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

/** Returns the error of `work` that its form shows, or null. @throws any other error */
export async function formErrorOf(work: () => Promise<unknown>): Promise<FormError | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!isBasetideError(error) || notForForms.has(error.code)) throw error;
    const message = error.message.replace(REPEATED, "Try again.");
    return { code: error.code, message, status: httpStatus[error.code] };
  }
}
