/** Tells a table whose triggers end our session from a server that is away. */
import { BasetideError } from "../errors";
import type { ReplicaSql } from "./connection";

/** What the driver, or the server, reports of a session that has ended while it ran a statement. */
const ENDED: ReadonlySet<unknown> = new Set(["CONNECTION_CLOSED", "57P01"]);

/**
 * Runs `work`, one statement that can be repeated, and repeats it if the session has ended meanwhile although the server
 * answers.
 *
 * @throws BasetideError `replica_refused` if the statement ends each session
 */
export async function onOwnSession<T>(sql: ReplicaSql, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await requireAnswer(sql, error);
  }
  try {
    return await work();
  } catch (error) {
    await requireAnswer(sql, error);
    const text =
      "Each write of the table's rows ends Basetide's session: a trigger on the table calls pg_terminate_backend. Drop the trigger, or let it spare the session that it runs in.";
    throw new BasetideError("replica_refused", text, { cause: error });
  }
}

/** @throws `error`, unless a session has ended; what the server answers, if it does not answer as usual */
async function requireAnswer(sql: ReplicaSql, error: unknown): Promise<void> {
  if (!ENDED.has((error as { code?: unknown } | null)?.code)) throw error;
  await sql`select`;
}
