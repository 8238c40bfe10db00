/** The data browser: rows of a replica, read with the console's role. */
export {
  type AttachedFile,
  type BrowsedPage,
  type BrowsedRecord,
  browseFilters,
  browsePage,
  browseRecord,
  type Cell,
  type CellList,
  elementsOf,
  PAGE_ROWS,
  type RecordChange,
} from "./browse";
export { browseIssues, type IssuePage } from "./browse-issues";
export type { BrowsedColumn } from "./columns";
export { startDownload } from "./download";
export {
  choicesOfColumn,
  type FilterOperator,
  isOperator,
  MOST_CHARACTERS,
  OPERATORS,
  OPERATORS_OF,
  operatorsFor,
} from "./filters";
export { isTooSlow } from "./reading";
export { CELL_CHARACTERS, SEARCH_MS } from "./statements";
export { browsableTables } from "./tables";
export {
  MOST_COLUMNS,
  MOST_FILTERS,
  readState,
  type StatedFilter,
  selectionOf,
  type ViewState,
  writeState,
} from "./view-state";
