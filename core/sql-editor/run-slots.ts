/**
 * Limits how much one account runs at once in this process, so that it uses at most half of the connections for queries
 * to a server (I8): two queries of the editor, and one sample of a table for the schema page.
 */
import { Turns } from "../async";
import { BasetideError } from "../errors";
import { READER_CONNECTIONS } from "../replica";

const QUERIES = READER_CONNECTIONS / 3;
const SAMPLES = READER_CONNECTIONS / 2 - QUERIES;
/** Longest wait for a sample, ms: the page is shown without it. */
const PATIENCE_MS = 5000;

const running = new Map<string, number>();
const samples = new Turns(SAMPLES);

/** @throws BasetideError `conflict` if as many are running as may */
export async function withRunSlot<T>(accountId: string, work: () => Promise<T>): Promise<T> {
  const count = running.get(accountId) ?? 0;
  if (count >= QUERIES) {
    throw new BasetideError(
      "conflict",
      `${QUERIES} queries of this account are running. Wait until one ends, or cancel it`,
    );
  }
  running.set(accountId, count + 1);
  try {
    return await work();
  } finally {
    const left = running.get(accountId)! - 1;
    if (left === 0) running.delete(accountId);
    else running.set(accountId, left);
  }
}

/** Waits for the account's other samples. @throws BasetideError `replica_busy` if they take too long */
export function inSampleTurn<T>(accountId: string, work: () => Promise<T>): Promise<T> {
  return samples.run(accountId, work, { patienceMs: PATIENCE_MS, tooLate: busy });
}

function busy(): BasetideError {
  return new BasetideError(
    "replica_busy",
    "Other tables of this account are being read. Try again in a moment",
  );
}
