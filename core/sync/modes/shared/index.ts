/** What rapid and live mode have in common. */
export { keepRebuilding, type RebuildWatch } from "./rebuild-background";
export { endIfOver, keepSweeping, type PassWatch, sweepInTurn, sweptAgoMs } from "./scan";
export { laneReader, readSince, type Together, type TogetherInput } from "./sync-session";
