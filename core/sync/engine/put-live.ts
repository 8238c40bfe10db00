/**
 * Puts a built table live: merges it into the live table, so that objects that others have created on it stay. Only a
 * table's first build is moved in.
 */
import { BasetideError, isBasetideError } from "../../errors";
import {
  type CatalogTable,
  compareBuild,
  fillColumns,
  MERGED_ROWS,
  mergeBuild,
  withoutBarringAliases,
} from "../../replica";
import { TRIES } from "../pacing";
import type { FilledBuild } from "../state";
import type { Sweep } from "./sweep";

/**
 * Postgres errors about what the table is: no room for a column, or a column that another object needs unchanged.
 */
const UNFIT: ReadonlySet<unknown> = new Set(["54000", "54011", "0A000", "2BP01"]);

export interface Put {
  how: "merged" | "moved";
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
  if (!live || live.spec.isDamaged) {
    const moved = await build.moveIn(live, table.loggedUpTo, all, readAs);
    if (moved === "behind") return undefined;
    if (moved === "moved") return { how: "moved", inserted: table.fingerprints.size, updated: 0, deleted: 0 };
  }
  const { tableId, name } = build.spec;
  try {
    return await withoutBarringAliases(sweep.replica, sweep.epoch, tableId, () =>
      merge(sweep, filled, live, all),
    );
  } catch (error) {
    if (!isBasetideError(error, "internal") || !UNFIT.has(error.details.sqlState)) throw error;
    throw new BasetideError(
      "needs_attention",
      `Postgres cannot change the table ${live?.spec.name ?? name}: ${error.message}. Drop what prevents it, or have the table copied into a new one: operator base rebuild.`,
      { cause: error, details: error.details },
    );
  }
}

/** @returns undefined if the build cannot be merged yet */
async function merge(
  { replica, epoch, reader }: Pick<Sweep, "replica" | "epoch" | "reader">,
  filled: FilledBuild,
  live: CatalogTable | undefined,
  issues: Parameters<typeof mergeBuild>[4]["issues"],
): Promise<Put | undefined> {
  const { build, table, readAs } = filled;
  const fills = filled.fills ?? 0;
  // After that the rest is written while readers wait, however much it is.
  const most = fills < TRIES ? MERGED_ROWS : null;
  const onBatch = () => reader.stop.throwIfAborted();
  if (live && filled.compared === undefined) {
    filled.compared = await compareBuild(replica, epoch, build, live, table.loggedUpTo, onBatch);
  }
  const options = { seen: table.loggedUpTo, issues, readAs, most, compared: filled.compared ?? null };
  const { merging, obstacle, inserted, updated, deleted } = await mergeBuild(
    replica,
    epoch,
    build,
    live,
    options,
  );
  if (merging === "unlike") {
    throw new BasetideError("needs_attention", `${live?.spec.name ?? build.spec.name}: ${obstacle}.`);
  }
  // Somebody has dropped the table; the next lease finds that out.
  if (merging === "absent")
    throw new BasetideError("shape_changed", `The table ${build.spec.name} is missing.`);
  if (merging === "large") {
    filled.fills = fills + 1;
    filled.filledRows = (filled.filledRows ?? 0) + (await fillColumns(replica, epoch, build, live!, onBatch));
    filled.compared = undefined;
  }
  if (merging !== "merged") return undefined;
  // A row that was filled before the merge may have been written once more.
  const wereThere = table.fingerprints.size - inserted!;
  const written = Math.min(wereThere, updated! + (filled.filledRows ?? 0));
  return { how: "merged", inserted: inserted!, updated: written, deleted: deleted! };
}
