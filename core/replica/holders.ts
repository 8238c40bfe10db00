/** Names the sessions that hold a table that is about to change, for the people who wait for the change. */
import { BasetideError } from "../errors";
import { readValue } from "./connection";
import type { Replica } from "./replica";

/**
 * Returns the same error, with the sessions that hold the table.
 *
 * @param table its SQL name
 * @param error `replica_busy`
 */
export async function withHolders(
  { sql, swap }: Replica,
  table: string,
  error: BasetideError,
): Promise<BasetideError> {
  const ours = sql.unsafe(swap);
  const who = await readValue(
    () => sql<{ value: string | null }[]>`select ${ours}.holders_of(${ours}.live_table(${table})) as value`,
  ).catch(() => null);
  if (who === null) return error;
  const text = `The table ${table} is locked by ${who}. Basetide changes it when these sessions end. Other tables continue to sync.`;
  return new BasetideError("replica_busy", text, { cause: error, details: error.details });
}
