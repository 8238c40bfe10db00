/**
 * Limits how much one account runs at once in this process, so that it uses at most half of the connections for queries
 * to a server (I8): two queries of the editor, and one sample of a table for the schema page.
 */
import { Turns } from "../async";
import { READER_STATEMENT_MS } from "../control/placement";
import { BasetideError } from "../errors";
import { READER_CONNECTIONS } from "../replica";

const QUERIES = READER_CONNECTIONS / 3;
const SAMPLES = READER_CONNECTIONS / 2 - QUERIES;
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

/** Waits for one other sample of the account at most: the page is shown without it. @throws BasetideError `replica_busy` if they take too long */
export function inSampleTurn<T>(accountId: string, work: () => Promise<T>): Promise<T> {
  return samples.run(accountId, work, { patienceMs: READER_STATEMENT_MS, tooLate: busy });
}

function busy(): BasetideError {
  return new BasetideError(
    "replica_busy",
    "Other tables of this account are being read. Try again in a moment",
  );
}
