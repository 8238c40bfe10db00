/** Makes a build live, as a sync does. */
import { type Build, type CatalogTable, fillColumns, mergeBuild, type Replica } from "../../core/replica";
import type { CellIssue } from "../../core/replica/spec";

/**
 * @param most rows of new columns that are written while readers wait; with more, the columns are filled before
 * @returns false if the recent-writes log has entries after `seen`
 */
export async function putBuild(
  { replica, epoch }: { replica: Replica; epoch: number },
  build: Build,
  live: CatalogTable | undefined,
  {
    seen = Number.MAX_SAFE_INTEGER,
    issues = [],
    most = null,
  }: { seen?: number; issues?: CellIssue[]; most?: number | null } = {},
): Promise<boolean> {
  if (!live || live.spec.isDamaged) {
    const moved = await build.moveIn(live, seen, issues);
    if (moved !== "occupied") return moved === "moved";
  }
  const options = { seen, issues, most, compared: null };
  const { merging, obstacle } = await mergeBuild(replica, epoch, build, live, options);
  if (obstacle !== null) throw new Error(obstacle);
  if (merging === "behind") return false;
  if (merging === "large") {
    await fillColumns(replica, epoch, build, live!);
    return putBuild({ replica, epoch }, build, live, { seen, issues, most });
  }
  if (merging !== "merged") throw new Error(`The build is ${merging}.`);
  await build.discard();
  return true;
}
