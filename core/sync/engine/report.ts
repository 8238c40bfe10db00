/** What a report says of the base as a whole: its issues, and how many records each table has. */
import type { Base, RunReport, TableCount } from "../../control/bases";
import { type Replica, readIssues } from "../../replica";
import type { SourceTable } from "../../source";
import type { BaseMemory } from "../state";

export async function tellIssues(replica: Replica, report: RunReport): Promise<void> {
  const issues = await readIssues(replica);
  report.issueCount = issues.total;
  report.issues = issues.latest;
}

/** Of tables that this worker has not read yet, what was known before. */
export function tableCounts(
  tables: SourceTable[],
  memory: BaseMemory,
  base: Pick<Base, "tables">,
): TableCount[] {
  return tables.map((table) => {
    const known = memory.tables.get(table.id);
    const before = base.tables.find((count) => count.source_id === table.id);
    return {
      name: known?.live.spec.name ?? before?.name ?? table.name,
      source_name: table.name,
      source_id: table.id,
      records: known?.isComplete ? known.fingerprints.size : (before?.records ?? 0),
    };
  });
}
