/** What a report says of the base as a whole (issues, records of each table), and what readers are told when a sync ends early. */
import type { Base, RunReport, TableCount } from "../../control/bases";
import { markSyncEnded, type Replica, readIssues } from "../../replica";
import type { SourceTable } from "../../source";
import type { BaseCache } from "../state";

export async function reportIssues(replica: Replica, report: RunReport): Promise<void> {
  const issues = await readIssues(replica);
  report.issueCount = issues.total;
  report.issues = issues.latest;
}

/** Of tables that this worker has not read yet, what was known before. */
export function tableCounts(
  tables: SourceTable[],
  cache: BaseCache,
  base: Pick<Base, "tables">,
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

/** A replica that does not answer within this keeps nobody from stopping, ms. */
const PATIENCE_MS = 1000;

/**
 * Never fails: where nothing can be told now, the next lease of the base says it as it begins.
 *
 * @param started the note that the sync has started, which may still be on its way
 */
export async function endSync(replica: Replica, epoch: number, started?: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, PATIENCE_MS);
  const told = Promise.resolve(started)
    .catch(() => {})
    .then(() => markSyncEnded(replica, epoch))
    .catch(() => {});
  await Promise.race([told, late]);
  clearTimeout(timer);
}
