/**
 * Limits how many bases of a server compare their tables in SQL at once: after a restart, all bases of a worker do.
 *
 * The server compares a few hundred pages a second. If a thousand bases shared that, each would wait for its next page for
 * longer than an idle connection is kept, and each page would cost a login, which takes more time than the page itself.
 *
 * A base that takes long, because it is large or its server is slow, passes its turn on after two minutes.
 */
import { Turns } from "../../async";
import { BasetideError } from "../../errors";
import { type Replica, syncConnections } from "../../replica";

/** At three requests a second, these have as many pages as a server compares. */
const MOST_BASES = 100;
const LONGEST_MS = 120_000;

const ofServers = new Turns<string>((server) => Math.min(MOST_BASES, syncConnections(server)), LONGEST_MS);

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

/** If the turn ends before it has begun, the next base's follows at once. */
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
    stop.addEventListener("abort", stopped, { once: true });
    void begun.then(() => {
      stop.removeEventListener("abort", stopped);
      resolve();
    });
  });
}
