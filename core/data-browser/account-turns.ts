/**
 * Limits how many pages of one account this process reads at once: its other accounts share the connections to a server
 * (I8). Those beyond the limit wait in order.
 */
import { Turns } from "../async";
import { READER_STATEMENT_MS } from "../control/placement";
import { BasetideError } from "../errors";
import { READER_CONNECTIONS } from "../replica";

/** A third: a page waits for two others at most before an account's share of a server is used up. */
const PER_ACCOUNT = READER_CONNECTIONS / 3;
/** Longest wait, ms: two statements that take as long as they may. */
const PATIENCE_MS = 2 * READER_STATEMENT_MS;

const turns = new Turns(PER_ACCOUNT);

/** @throws BasetideError `replica_busy` if the account's other pages take too long */
export function inTurn<T>(accountId: string, work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  return turns.run(accountId, work, { patienceMs, tooLate: busy });
}

function busy(): BasetideError {
  const message = "Other pages of this account are still being read. Try again when they are shown";
  return new BasetideError("replica_busy", message);
}
