/** Change sets: ordered changes of records that Basetide makes in the source, their approval, results and undoing. */
export {
  type AwaitedOperation,
  createAwaitedSet,
  createSubmittedSet,
  listWrites,
  type SqlWrite,
  sourceOfWrites,
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
  type ItemState,
  itemStates,
  listChangeItems,
  listChangeSets,
} from "./change-sets";
export {
  claimChangeSet,
  endApplied,
  endChangeSet,
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
  unfinishedItems,
} from "./claims";
export {
  areById,
  type CellValues,
  isCreatedBy,
  linksIn,
  MOST_OPERATIONS,
  type OperationKind,
  operationKinds,
} from "./operations";
export { undoChangeSet } from "./undo";
