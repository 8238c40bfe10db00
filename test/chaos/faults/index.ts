/** Every fault that a service must survive. */
import type { Fault } from "../harness/chaos";
import { away, diskFull, killBackend, killDatabases } from "./databases";
import { cutAtCommit, freezeAtCommit, killAtCommit, killAtCursor, killInSwap } from "./points";
import { clockOff, freeze, killAtRandom, rollOut } from "./processes";
import { promote } from "./promotion";
import { refusedKeys, spoiltAnswers } from "./source-errors";
import { spoiltWays } from "./ways";

/** A worker that is silent for this long has lost its leases, ms: missing heartbeats are detected after 10 s. */
const FREEZE_MS = { short: 16_000, long: 65_000 };

/** Faults that show their effect within seconds, each of another kind, in two waves. */
export const shortWaves: Fault[][] = [
  [killAtCommit("worker", "before"), diskFull],
  [killAtCommit("proxy", "before"), killInSwap("replicas"), killDatabases("control")],
];

export const longFaults: Fault[] = [
  killAtRandom("worker"),
  killAtRandom("proxy"),
  killAtRandom("console"),
  killDatabases("control"),
  killDatabases("replicas"),
  killDatabases("control", "replicas"),
  killBackend("control"),
  killBackend("replicas"),
  ...[8000, 60_000].flatMap((ms) => [
    away(["control"], ms),
    away(["replicas"], ms),
    away(["control", "replicas"], ms),
  ]),
  promote("control", "synchronous"),
  promote("control", "asynchronous"),
  promote("replicas", "synchronous"),
  promote("replicas", "asynchronous"),
  killAtCommit("worker", "before"),
  killAtCommit("worker", "after"),
  killAtCommit("proxy", "before"),
  killAtCommit("proxy", "after"),
  cutAtCommit,
  killInSwap("worker"),
  killInSwap("replicas"),
  freeze(FREEZE_MS.short),
  freeze(FREEZE_MS.long),
  freezeAtCommit,
  killAtCursor,
  ...spoiltWays,
  diskFull,
  clockOff,
  spoiltAnswers,
  refusedKeys,
  rollOut,
];
