/** The parts that rapid and live mode share. */
export { type RebuildWatch, rebuilding } from "./rebuild-background";
export { asking, type ScanWatch, scanning, sweepExclusively, sweptAgoMs } from "./scan";
export {
  readerWithPriority,
  readSince,
  type SyncSession,
  type SyncSessionInput,
  schedulerOf,
  tablesOf,
} from "./sync-session";
