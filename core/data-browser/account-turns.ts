/**
 * Limits how many pages of one account this process reads at once: its other accounts share the connections to a server
 * (I8). Those beyond the limit wait in order.
 */
import { BasetideError } from "../errors";

const PER_ACCOUNT = 2;
/** Longest wait, ms: two statements that take as long as they may. */
const PATIENCE_MS = 10_000;

interface Turns {
  running: number;
  waiting: (() => void)[];
}

const byAccount = new Map<string, Turns>();

/** @throws BasetideError `replica_busy` if the account's other pages take too long */
export async function inTurn<T>(
  accountId: string,
  work: () => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const turns = byAccount.get(accountId) ?? { running: 0, waiting: [] };
  byAccount.set(accountId, turns);
  if (turns.running < PER_ACCOUNT) turns.running++;
  else await waitFor(turns, patienceMs);
  try {
    return await work();
  } finally {
    const next = turns.waiting.shift();
    // The turn goes to the next one, which counts as running already.
    if (next) next();
    else if (--turns.running === 0) byAccount.delete(accountId);
  }
}

function waitFor(turns: Turns, patienceMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      turns.waiting.splice(turns.waiting.indexOf(begin), 1);
      reject(
        new BasetideError(
          "replica_busy",
          "Other pages of this account are still being read. Try again when they are shown",
        ),
      );
    }, patienceMs);
    turns.waiting.push(begin);
  });
}
