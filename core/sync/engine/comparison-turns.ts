/**
 * Limits how many bases of a server compare their tables in SQL at once: after a restart, all bases of a worker do.
 *
 * A server compares a few hundred pages a second. If a thousand bases shared that, each would wait for its next page longer
 * than an idle connection is kept open, and each page would cost a login, which takes longer than the page itself.
 *
 * A base that is still comparing after its turn passes it on and continues: it is large, or its tables are locked.
 */
import { offAbort, onAbort, Turns } from "../../async";
import { BasetideError } from "../../errors";
import { type Replica, syncConnections } from "../../replica";
import { TURN_MS } from "../pacing";

/** At three pages a second each, they keep a server busy. */
const MOST_BASES = 100;

const ofServers = new Turns<string>((server) => Math.min(MOST_BASES, syncConnections(server)), TURN_MS);

/** The turn of a base, which its tables share. */
interface Turn {
  tables: number;
  begun: Promise<void>;
  end: () => void;
}

const ofBases = new WeakMap<object, Turn>();

/**
 * Runs `work`, which compares a table of the replica's base, when it is the base's turn.
 *
 * @throws the error of `work`; BasetideError `sync_stopped` if `stop` aborts before
 */
export async function inComparisonTurn<T>(
  replica: Pick<Replica, "server">,
  stop: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const turn = ofBases.get(replica) ?? newTurn(replica);
  turn.tables++;
  try {
    await unlessStopped(turn.begun, stop);
    return await work();
  } finally {
    if (--turn.tables === 0) {
      ofBases.delete(replica);
      turn.end();
    }
  }
}

/** If the turn ends before it begins, it is passed on at once when it comes. */
function newTurn(replica: Pick<Replica, "server">): Turn {
  const begun = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  void ofServers.run(replica.server, () => {
    begun.resolve();
    return over.promise;
  });
  const turn = { tables: 0, begun: begun.promise, end: over.resolve };
  ofBases.set(replica, turn);
  return turn;
}

function unlessStopped(begun: Promise<void>, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopped = () => reject(new BasetideError("sync_stopped"));
    if (stop.aborted) return stopped();
    onAbort(stop, stopped);
    void begun.then(() => {
      offAbort(stop, stopped);
      resolve();
    });
  });
}
