/**
 * The parts of a report that concern the whole base (issues, records of each table), and the note to readers when a
 * sync ends early.
 */
import { withTimeout } from "../../async";
import { markSyncEnded, type Replica, readIssues } from "../../replica";
import type { SourceTable } from "../../source";
import type { RunReport, SyncedBase, TableCount } from "../host";
import { MOST_PATIENCE_MS } from "../pacing";
import type { BaseCache } from "../state";

export async function reportIssues(replica: Replica, report: RunReport): Promise<void> {
  const issues = await readIssues(replica);
  report.issueCount = issues.total;
  report.issues = issues.groups;
}

/** Counts the records of each table; uses the previous count of a table that this worker has not read yet. */
export function tableCounts(
  tables: SourceTable[],
  cache: BaseCache,
  base: Pick<SyncedBase, "tables">,
): TableCount[] {
  return tables.map((table) => {
    const known = cache.tables.get(table.id);
    const before = base.tables.find((count) => count.source_id === table.id);
    return {
      name: known?.live.spec.name ?? before?.name ?? table.name,
      source_name: table.name,
      source_id: table.id,
      records: known?.isComplete ? known.fingerprints.size : (before?.records ?? 0),
    };
  });
}

/** Never fails, nor takes long: if the end cannot be written now, the next lease of the base writes it when it starts. */
export async function endSync(replica: Replica, epoch: number): Promise<void> {
  const marked = markSyncEnded(replica, epoch).catch(() => {});
  await withTimeout(MOST_PATIENCE_MS, () => {}, marked);
}
