/**
 * Hands what is known of a base's rows to the next worker, when this one gives the base up: because it stops, or because
 * another one has room for it. The next one's first sweep then compares no rows in SQL.
 */
import packageJson from "../../../package.json" with { type: "json" };
import { Turns, withTimeout } from "../../async";
import { BasetideError } from "../../errors";
import type { Logger } from "../../log";
import { handOver, type KnownRows, type Replica, takeOver } from "../../replica";
import { mayHoldAttachments } from "../../source";
import { MOST_OF_SERVER } from "../engine";
import { MOST_PATIENCE_MS } from "../pacing";
import type { BaseCache } from "../state";

/** Other versions may map records to other rows, or hash them otherwise. */
const PROGRAM = `${packageJson.version} bun ${Bun.version}`;
/** Of all fingerprints of a base, which are sent as one parameter: those of 700,000 records. */
const MOST_BYTES = 8 * 1024 * 1024;
/** How long a base waits for its turn, ms. Container runtimes kill a process 10 to 30 s after SIGTERM. */
const TURN_PATIENCE_MS = 15_000;
/**
 * While a base hands over, memory holds several copies of its fingerprints, some as text: when a thousand bases of 10,000
 * records did so at once, a worker that stopped needed twice its usual memory.
 */
const turns = new Turns<string>(MOST_OF_SERVER);

interface Known {
  replica: Replica;
  epoch: number;
  cache: BaseCache;
}

/** Stores what this lease knows, at its end. Never fails: without it, the next lease compares the rows. */
export async function handOverRows(known: Known, log: Logger): Promise<void> {
  // A base at rest has no connection, and is compared once in hours: logging in would cost more than it saves.
  if (!known.replica.isConnected()) return;
  const tooLate = () =>
    new BasetideError("sync_stopped", "other bases of the server took too long to hand over");
  try {
    await turns.run(known.replica.server, () => handOverNow(known), {
      patienceMs: TURN_PATIENCE_MS,
      tooLate,
    });
  } catch (error) {
    log.debug({ error }, "handing over what is known of rows failed");
  }
}

async function handOverNow({ replica, epoch, cache }: Known): Promise<void> {
  const known = knownRows(cache);
  // A server that is slower does not delay the end of a worker.
  if (known.length > 0)
    await withTimeout(MOST_PATIENCE_MS, () => {}, handOver(replica, epoch, PROGRAM, known));
}

/** Reads what the lease before this one has stored. Never fails: a customer's server may have too much of it for the gateway. */
export async function takeOverRows(
  { replica, cache }: Pick<Known, "replica" | "cache">,
  previousEpoch: number,
  log: Logger,
): Promise<void> {
  const known = await takeOver(replica, previousEpoch, PROGRAM).catch((error: unknown) => {
    log.debug({ error }, "taking over what is known of rows failed");
    return [];
  });
  for (const { tableId, comparedAgoMs, ...rows } of known)
    cache.handedOver.set(tableId, { ...rows, comparedAt: performance.now() - comparedAgoMs });
}

function knownRows({ schema, tables }: BaseCache): KnownRows[] {
  const known: KnownRows[] = [];
  let bytes = 0;
  for (const { id, fields } of schema?.tables ?? []) {
    const table = tables.get(id);
    if (!table?.isComplete || table.fingerprints.size === 0) continue;
    // Fingerprints of attachments depend on how long this process has been running.
    if (!table.hasLastingUrls && fields.some(mayHoldAttachments)) continue;
    const fingerprints = table.fingerprints.pack();
    bytes += fingerprints.length;
    if (bytes > MOST_BYTES) break;
    const { live, loggedUpTo, comparedAt } = table;
    const comparedAgoMs = performance.now() - comparedAt;
    known.push({ tableId: id, shape: live.shape, loggedUpTo, comparedAgoMs, fingerprints });
  }
  return known;
}
