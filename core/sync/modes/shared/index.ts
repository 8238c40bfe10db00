/** The parts that rapid and live mode share. */
export { keepRebuilding, type RebuildWatch } from "./rebuild-background";
export { endIfOver, keepAsking, keepSweeping, type ScanWatch, sweepExclusively, sweptAgoMs } from "./scan";
export { readerWithPriority, readSince, type SyncSession, type SyncSessionInput } from "./sync-session";
