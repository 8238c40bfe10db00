/** Runs the browser's statements as the console's role, and turns their errors into what a person can do about them. */
import type { Context } from "../context";
import type { Base } from "../control/bases";
import {
  type Database,
  getDatabase,
  READER_STATEMENT_MS,
  type ReaderSql,
  readerPool,
} from "../control/placement";
import { BasetideError, type ErrorCode, isBasetideError } from "../errors";
import { isServerFailure } from "../postgres";
import { inTurn } from "./account-turns";
import type { BrowseStatement } from "./statements";

export type ReadContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** SQLSTATEs of a name that has changed since the table was described: undefined table, column, schema. */
const RENAMED = new Set(["42P01", "42703", "3F000"]);
const CANCELED = "57014";
const TOO_MANY_CONNECTIONS = "53300";
const LOCKED = "55P03";
const NO_RIGHT = "42501";
/** Classes of a login that is not accepted, and of a value that cannot be compared. */
const REFUSED_LOGIN = /^28/;
const DATA_ERROR = /^22/;

/** Thrown by statements on a table that changed in between; `reading` describes it again. */
class Renamed extends Error {}

/**
 * Runs `work` on the base's database, as its customer. If a table or a column was renamed meanwhile, `work` runs once more.
 *
 * @throws BasetideError `replica_unavailable`, `replica_busy`, `destination_invalid`, `invalid_request`, `not_found`
 */
export async function reading<T>(
  ctx: ReadContext,
  base: Pick<Base, "database">,
  work: (sql: ReaderSql) => Promise<T>,
): Promise<T> {
  const attempt = async () => {
    const database = await getDatabase(ctx.db, base.database.id);
    try {
      return await inTurn(database.accountId, async () => work(await readerPool(ctx, database)));
    } catch (error) {
      throw readingError(error, database);
    }
  };
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof Renamed)) throw error;
  }
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof Renamed)) throw error;
    throw new BasetideError("not_found", "The table is being changed. Reload the page in a moment", {
      cause: error,
    });
  }
}

/** Runs one statement. @returns its rows as arrays of values */
export async function rowsOf(sql: ReaderSql, { text, values }: BrowseStatement): Promise<unknown[][]> {
  return sql.unsafe(text, values).values();
}

/** Was a statement canceled because it took too long? */
export function isTooSlow(error: unknown): boolean {
  return isBasetideError(error, "replica_busy") && error.details.sqlState === CANCELED;
}

function readingError(error: unknown, database: Database): Error {
  if (isBasetideError(error)) return error;
  const sqlState = String((error as { code?: unknown } | null)?.code ?? "");
  const failure = (code: ErrorCode, message: string) =>
    new BasetideError(code, message, { cause: error, details: { sqlState } });
  const ours = database.clusterId !== null;
  const who = database.hasReader ? "the user of the reading URL" : `the user ${database.role}`;
  if (RENAMED.has(sqlState)) return new Renamed("a name has changed", { cause: error });
  if (sqlState === CANCELED) {
    const seconds = READER_STATEMENT_MS / 1000;
    return failure("replica_busy", `The query took longer than ${seconds} seconds and was canceled`);
  }
  if (sqlState === LOCKED) {
    return failure("replica_busy", "A query has locked the table. Reload the page in a moment");
  }
  if (sqlState === TOO_MANY_CONNECTIONS) {
    const message = ours
      ? "All connections that the console may open to this database are in use. Try again in a moment, or ask the operator for more"
      : "The database server has no free connection. Close one, or raise its max_connections";
    return failure("replica_busy", message);
  }
  if (REFUSED_LOGIN.test(sqlState)) {
    const message = ours
      ? "The database refuses the console's role. Rotate the password under Connect, which gives the role a new one, too"
      : `The database refuses ${who}. Check its password and rights on your server`;
    return failure("destination_invalid", message);
  }
  if (sqlState === NO_RIGHT) {
    const message = `The database does not let ${ours ? "the console's role" : who} read this table. Run: grant select on all tables in schema … to the user`;
    return failure("destination_invalid", message);
  }
  if (DATA_ERROR.test(sqlState)) {
    return failure("invalid_request", "A filter's value does not fit its column. Change it");
  }
  if (isServerFailure(error)) {
    return failure("replica_unavailable", "The database cannot be reached now. Try again in a moment");
  }
  return failure("internal", "Reading the table failed");
}
