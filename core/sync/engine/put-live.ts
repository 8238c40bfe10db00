/**
 * Puts a table that was built aside live: merges it into the table that is there where that keeps its columns, so that what
 * others have put on it stays; swaps it in otherwise.
 */
import { isBasetideError } from "../../errors";
import {
  type CatalogTable,
  compareBuild,
  fillColumns,
  keepsColumns,
  MERGED_ROWS,
  mergeBuild,
} from "../../replica";
import type { FilledBuild } from "../state";
import type { Sweep } from "./sweep";

/** How often columns are filled ahead: then the rest is written while readers wait, however much it is. */
const MAX_FILLS = 3;
/** Errors of Postgres that a new table has not: no room for a column, a column that something else needs as it is. */
const ONLY_SWAPPED: ReadonlySet<unknown> = new Set(["54000", "54011", "0A000", "2BP01"]);

export interface Put {
  how: "merged" | "swapped";
  /** Rows of the table that SQL shows. */
  inserted: number;
  updated: number;
  deleted: number;
}

/**
 * Tries once, with all that the build knows by now.
 *
 * @returns undefined, with nothing done, when the recent-writes log has gone on: catch up and come again
 * @throws BasetideError `replica_busy` when queries hold the live table; try again. `shape_changed` when it is not `live`
 *   any more
 */
export async function putLive(
  sweep: Pick<Sweep, "replica" | "epoch" | "reader">,
  filled: FilledBuild,
  live: CatalogTable | undefined,
): Promise<Put | undefined> {
  const { build, table, issues, readAs } = filled;
  const all = [...issues.values()].flat();
  if (live && filled.isMergeable !== false && keepsColumns(live.spec, build.spec)) {
    const merged = await merge(sweep, filled, live, all);
    filled.isMergeable = merged !== false;
    if (merged !== false) return merged;
  }
  if (!(await build.swapIn(live, table.loggedUpTo, all, readAs))) return undefined;
  return { how: "swapped", inserted: table.fingerprints.size, updated: 0, deleted: 0 };
}

/** @returns false where it cannot be, and undefined where it cannot be yet */
async function merge(
  { replica, epoch, reader }: Pick<Sweep, "replica" | "epoch" | "reader">,
  filled: FilledBuild,
  live: CatalogTable,
  issues: Parameters<typeof mergeBuild>[4]["issues"],
): Promise<Put | false | undefined> {
  const { build, table, readAs } = filled;
  const fills = filled.fills ?? 0;
  const most = fills < MAX_FILLS ? MERGED_ROWS : null;
  const onBatch = () => reader.stop.throwIfAborted();
  try {
    if (filled.compared === undefined) {
      filled.compared = await compareBuild(replica, epoch, build, live, table.loggedUpTo, onBatch);
    }
    const options = { seen: table.loggedUpTo, issues, readAs, most, compared: filled.compared };
    const { merging, inserted, updated, deleted } = await mergeBuild(replica, epoch, build, live, options);
    if (merging === "large") {
      filled.fills = fills + 1;
      filled.filledRows =
        (filled.filledRows ?? 0) + (await fillColumns(replica, epoch, build, live, onBatch));
      filled.compared = undefined;
    }
    if (merging !== "merged") return merging === "unlike" ? false : undefined;
    // What was filled ahead may have been written once more.
    const wereThere = table.fingerprints.size - inserted!;
    const written = Math.min(wereThere, updated! + (filled.filledRows ?? 0));
    return { how: "merged", inserted: inserted!, updated: written, deleted: deleted! };
  } catch (error) {
    if (!isBasetideError(error, "internal") || !ONLY_SWAPPED.has(error.details.sqlState)) throw error;
    reader.log.info({ error, tableId: build.spec.tableId }, "table cannot be merged, and is swapped");
    return false;
  }
}
