/** Change sets: ordered changes of records that Basetide makes in the source, their approval, results and undoing. */
export {
  createSubmittedSet,
  endedSets,
  listWrites,
  newAwaitedSet,
  type WritesSource,
} from "./awaited";
export {
  CHANGE_SET_CHANNEL,
  type ChangeItem,
  type ChangeSet,
  type ChangeSetState,
  changeSetStates,
  createChangeSet,
  type Decision,
  decideChangeSet,
  decisions,
  getChangeSet,
  getProposal,
  type ItemState,
  itemStates,
  listChangeItems,
  listChangeSets,
  listProposals,
  proposalOf,
  requireRoom,
} from "./change-sets";
export {
  areCreating,
  claimChangeSet,
  endApplied,
  endChangeSet,
  GIVEN_UP_MS,
  type HeldItem,
  type HeldSet,
  knownRecords,
  LET_GO_MS,
  madeRecords,
  type Outcome,
  RENEW_EVERY_MS,
  recordOutcomes,
  recordSent,
  releaseChangeSet,
  renewChangeSet,
  restChangeSet,
  type SetHold,
  type SetRest,
  unfinishedItems,
} from "./claims";
export { addsFilesByUrl, COMPUTED_TYPES, couldBecome, differingCells, otherForms } from "./compare-cells";
export { choosingFiles, type KeptFile, keepingFiles, staleFiles, withFiles } from "./kept-files";
export { type ListedWrite, listAllWrites } from "./list-all-writes";
export type { AwaitedOperation } from "./new-items";
export {
  areById,
  type CellValues,
  type ChangeOperation,
  isCreatedBy,
  linksIn,
  MOST_OPERATIONS,
  MOST_PROPOSED,
  type OperationKind,
  operationKinds,
  UNKNOWN_CELL,
} from "./operations";
export { type RecordsNow, readRecordsNow } from "./read-now";
export { undoChangeSet } from "./undo";
