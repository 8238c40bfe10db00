/** A build (a new table that is built next to the live one) after it has been filled and before it goes live. */
import type { Build, CellIssue, Compared, ReadAs } from "../../replica";
import type { UnreadableRecord } from "../../source";
import type { TableCache } from "./base-cache";

/** The read version of each scan of the fingerprints: every new read version starts a new scan. */
export type VersionByScan = Map<number, number>;

/** A build that has been filled, with the data that putting it live needs. */
export interface FilledBuild {
  build: Build;
  table: TableCache;
  /** The read version before the first page was requested. */
  beganAt: number;
  readVersions: VersionByScan;
  issues: Map<string, CellIssue[]>;
  readAs: ReadAs | undefined;
  /** Records of the source that cannot be read. */
  unreadable: UnreadableRecord[];
  /** When queries were first found to hold the live table (performance.now()). */
  busySince?: number | undefined;
  /** The rows that may differ from the live table's, once they have been compared; null: any. */
  compared?: Compared | null | undefined;
  /** How often its new columns were filled before the merge. */
  fills?: number;
  /** Rows that were written by those fills. */
  filledRows?: number;
}
