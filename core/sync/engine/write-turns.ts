/**
 * Limits how many pages this process parses and writes at once: for each server, over all bases, and for each base.
 *
 * Pages arrive as fast as the source allows, whatever the server can take: after a restart, a thousand bases of 10,000
 * records compare all of their pages with their rows. A parsed page takes many times the memory of a received one, which
 * is what waits here.
 *
 * A base whose tables somebody has locked must not stop the others. It has at most two of a server's turns, and keeps each
 * for five seconds. Its tables that fail share one of them, so that the others do not wait for their locks and triggers.
 */
import { Turns } from "../../async";
import { BASE_CONNECTIONS, type Replica } from "../../replica";
import { MOST_PATIENCE_MS } from "../pacing";

/** Enough for three hundred pages a second to a server that is 100 ms away. */
export const MOST_OF_SERVER = 32;

const ofServers = new Turns(MOST_OF_SERVER, MOST_PATIENCE_MS);
const ofBases = new Turns(BASE_CONNECTIONS);
const ofFailing = new Turns(1);

/**
 * Runs `work`, which parses and writes a page of the replica's base, when it is its turn. It must not wait for another turn.
 *
 * @param isFailing the page is of a table that fails
 */
export function inWriteTurn<T>(
  replica: Pick<Replica, "server">,
  work: () => Promise<T>,
  isFailing = false,
): Promise<T> {
  const inTurn = () => ofBases.run(replica, () => ofServers.run(replica.server, work));
  return isFailing ? ofFailing.run(replica, inTurn) : inTurn();
}
