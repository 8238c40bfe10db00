/** What a worker remembers of a base between syncs. */
export {
  type BaseMemory,
  emptyMemory,
  forgetRows,
  mappingOf,
  recall,
  requestLook,
  type SweepPass,
  type TableMemory,
  tableMemory,
} from "./base-cache";
export { BATCH, type Batch, type Named, Pending } from "./dirty-set";
export type { FilledBuild, TicketByPass } from "./filled-build";
export { Fingerprints } from "./fingerprints";
export { emptyLiveMemory, type LiveMemory } from "./live-cache";
export { MassChange } from "./mass-change";
export { Misses } from "./missed-changes";
export { TicketSource } from "./read-versions";
export { fingerprintIn, isUrlRefresh } from "./record-fingerprint";
