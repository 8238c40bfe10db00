/** Runs statements for tools as the agent's role. */
import { BasetideError } from "../../../core/errors";
import type { ReaderTarget } from "../../../core/replica";
import { type QueryFailure, type QueryOutcome, runQuery } from "../../../core/sql-editor";

export const DENIED = "42501";

/** Runs it once more with the grants renewed if the role may not read something: a table may have been made again. */
export async function runSql(
  { target }: { target(): Promise<ReaderTarget> },
  ...asked: Parameters<typeof runQuery> extends [unknown, ...infer Rest] ? Rest : never
): Promise<QueryOutcome> {
  const outcome = await runQuery(await target(), ...asked);
  return outcome.failure?.sqlState === DENIED ? runQuery(await target(), ...asked) : outcome;
}

/** @param advice what to do about it */
export function failureOf(
  { message, detail, hint, sqlState }: QueryFailure,
  ...advice: (string | undefined)[]
): BasetideError {
  if (sqlState === undefined) return new BasetideError("query_stopped", message);
  const text = [message, detail, hint, ...advice].filter((part) => part).join(". ");
  return new BasetideError("query_failed", `${sqlState}: ${text}`);
}
