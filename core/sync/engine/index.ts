/** Sweeps, rebuilds, schema tracking: how a table is read and applied. */
export { type CatchUpInput, catchingUp } from "./catch-up";
export { foundIn } from "./evidence";
export { CLOCKS_OVERLAP_MS, OVERLAP_MS, type PollResult, pollForChanges } from "./find-modified";
export { askFailing, readerOfTable, watchAnswers, withPatience } from "./patience";
export { countedSizes, ProgressBoard } from "./progress";
export { isOutdated, readAsNow } from "./read-as";
export { type AskKind, metered, type Reader } from "./reader";
export { isRefusedChange, rebuildTable } from "./rebuild";
export { endSync, reportIssues, tableCounts } from "./report";
export { oddIssues, withSecondRead } from "./schema-check";
export { SchemaTracker } from "./schema-tracker";
export { expectLogged, type Sweep, sweepTable, type TableOutcome } from "./sweep";
export { newReport, type SyncInput, syncBase, tableFailed } from "./sync-base";
export { type NextSync, withdrawNext } from "./sync-marks";
export { NOT_AMONG_READABLE, reportRecords } from "./unreadable";
export { applyAsRead, applyRecords, removeRecords } from "./write-records";
export { MOST_OF_SERVER } from "./write-turns";
