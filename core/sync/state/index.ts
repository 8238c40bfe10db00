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
export { Fingerprints } from "./fingerprints";
export { MassChange } from "./mass-change";
export { TicketSource } from "./read-versions";
export { fingerprintIn, isUrlRefresh } from "./record-fingerprint";
