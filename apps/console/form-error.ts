/** Errors that a form shows where they were made. */
import { type ErrorCode, httpStatus, isBasetideError } from "../../core/errors";

/** Errors that no other input would help against. */
const notForForms = new Set<ErrorCode>(["unauthorized", "forbidden", "internal", "control_unavailable"]);

export interface FormError {
  message: string;
  status: number;
}

/** The error of `work` that its form shows; null where there is none. @throws any other error */
export async function formErrorOf(work: () => Promise<unknown>): Promise<FormError | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!isBasetideError(error) || notForForms.has(error.code)) throw error;
    return { message: error.message, status: httpStatus[error.code] };
  }
}
