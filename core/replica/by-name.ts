/** Queries that name tables and columns as the catalog had them: people may have renamed them since. */
import { BasetideError, isBasetideError } from "../errors";
import { onReplica } from "./connection";

/** SQLSTATEs of a table and of a column that are not there under that name, and of a column of another type. */
const OTHER_SHAPE = ["42P01", "42703", "42883", "42804", "22P02"];

/** @throws BasetideError `shape_changed` when the names are others by now; what `onReplica` throws */
export async function byName<T>(query: () => PromiseLike<T>): Promise<T> {
  try {
    return await onReplica(async () => query());
  } catch (error) {
    if (!isBasetideError(error, "internal") || !OTHER_SHAPE.includes(String(error.details.sqlState)))
      throw error;
    throw new BasetideError("shape_changed", error.message, { cause: error });
  }
}
