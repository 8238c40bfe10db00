/** A table that was built aside, between being filled and going live. */
import type { Build, CellIssue, Compared, ReadAs } from "../../replica";
import type { TableCache } from "./base-cache";

/** The read version of each of the fingerprints' passes: a pass begins with every new read version. */
export type VersionByScan = Map<number, number>;

/** A build that has been filled, and what with. */
export interface FilledBuild {
  build: Build;
  table: TableCache;
  /** The read version counter before anything was read. */
  beganAt: number;
  readVersions: VersionByScan;
  issues: Map<string, CellIssue[]>;
  readAs: ReadAs | undefined;
  /** When queries were first found to hold the live table (performance.now()). */
  busySince?: number | undefined;
  /** Can it be merged into the live table? Undefined until that was tried. */
  isMergeable?: boolean | undefined;
  /** Which rows may differ from the live table's, once they have been compared; null: any. */
  compared?: Compared | null | undefined;
  /** How often its new columns were filled ahead. */
  fills?: number;
  /** Rows that were written then. */
  filledRows?: number;
}
