/** The quota ledger: no request goes to a source before it is booked here. */
export type { LiveKind } from "./backend";
export { CallCounter } from "./call-counter";
export { processClock, type QuotaClock } from "./clock";
export { createLedger, type Ledger, type SyncCall } from "./rate-limiter";
export { syncShare } from "./sync-share";
export { trimWindows } from "./trim-windows";
