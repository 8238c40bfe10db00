/** What rapid and live mode have in common. */
export { keepRebuilding, type RebuildWatch } from "./rebuild-background";
export { endIfOver, keepSweeping, type ScanWatch, sweepExclusively, sweptAgoMs } from "./scan";
export { readerWithPriority, readSince, type SyncSession, type SyncSessionInput } from "./sync-session";
