/** The quota ledger: no request goes to a source before it is booked here. */
export type { BlockReason, CallKind, LiveKind, QuotaKey } from "./book";
export { CallCounter } from "./call-counter";
export type { QuotaClock } from "./clock";
export {
  type ClientCall,
  createLedger,
  type Ledger,
  type LedgerOptions,
  type QuotaUsage,
  type SyncCall,
} from "./ledger";
export { trimWindows } from "./trim-windows";
