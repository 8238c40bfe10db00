/** The console's SQL editor: runs a customer's SQL with their own role, and keeps queries. */
export { adviceOn } from "./advice";
export { NUMERIC_TYPES } from "./column-types";
export { type OldNames, type OldNameUse, oldNames, textsThatName } from "./old-names";
export { type PlanNode, queryPlanOf } from "./plan";
export { clearHistory, listHistory, type PastQuery, pastQuery, recordQuery } from "./query-history";
export {
  MOST_TEXT,
  type PlanKind,
  type QueryFailure,
  type QueryOutcome,
  runQuery,
  type StatementResult,
  streamQuery,
} from "./run";
export { inSampleTurn, withRunSlot } from "./run-slots";
export { deleteSavedQuery, listSavedQueries, type SavedQuery, saveQuery } from "./saved-queries";
export { type ColumnSample, sampleTable, type TableSample } from "./table-sample";
