/**
 * Puts a built table live. Merges it into the live table if that keeps its columns, so that objects that others have
 * created on it stay; swaps it in otherwise.
 */
import { isBasetideError } from "../../errors";
import {
  type CatalogTable,
  compareBuild,
  fillColumns,
  keepsColumns,
  MERGED_ROWS,
  mergeBuild,
  withoutBarringAliases,
} from "../../replica";
import type { FilledBuild } from "../state";
import type { Sweep } from "./sweep";

/**
 * How often columns are filled before the merge. After that the rest is written while readers wait, however much it
 * is.
 */
const MAX_FILLS = 3;
/**
 * Postgres errors that a new table would not have: no room for a column, or a column that another object needs
 * unchanged.
 */
const ONLY_SWAPPED: ReadonlySet<unknown> = new Set(["54000", "54011", "0A000", "2BP01"]);

export interface Put {
  how: "merged" | "swapped";
  /** Rows of the table that SQL shows. */
  inserted: number;
  updated: number;
  deleted: number;
}

/**
 * Tries once, with the current content of the build.
 *
 * @returns undefined, with nothing changed, when the recent-writes log has new entries: catch up and call again
 * @throws BasetideError `replica_busy` when queries hold the live table: try again. `shape_changed` when it is no
 *   longer `live`
 */
export async function putLive(
  sweep: Pick<Sweep, "replica" | "epoch" | "reader">,
  filled: FilledBuild,
  live: CatalogTable | undefined,
): Promise<Put | undefined> {
  const { build, table, issues, readAs } = filled;
  const all = [...issues.values()].flat();
  if (live && filled.isMergeable !== false && keepsColumns(live.spec, build.spec)) {
    const merged = await withoutBarringAliases(sweep.replica, sweep.epoch, live.spec.tableId, () =>
      merge(sweep, filled, live, all),
    );
    filled.isMergeable = merged !== false;
    if (merged !== false) return merged;
  }
  if (!(await build.swapIn(live, table.loggedUpTo, all, readAs))) return undefined;
  return { how: "swapped", inserted: table.fingerprints.size, updated: 0, deleted: 0 };
}

/** @returns false if the build cannot be merged; undefined if it cannot be merged yet */
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
    // A row that was filled before the merge may have been written once more.
    const wereThere = table.fingerprints.size - inserted!;
    const written = Math.min(wereThere, updated! + (filled.filledRows ?? 0));
    return { how: "merged", inserted: inserted!, updated: written, deleted: deleted! };
  } catch (error) {
    if (!isBasetideError(error, "internal") || !ONLY_SWAPPED.has(error.details.sqlState)) throw error;
    reader.log.info({ error, tableId: build.spec.tableId }, "table cannot be merged; it is swapped");
    return false;
  }
}
