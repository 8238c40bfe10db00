/**
 * Makes the transactions of one outbox change sets, in the order in which they were committed, and records there what has
 * become of them.
 *
 * I7. A transaction is recorded as taken after its change set is stored. If this process dies in between, it is read again,
 * and its set is there already. Several readers do no harm: each stores the sets in the same order.
 */
import type { Context } from "../../../core/context";
import { type AwaitedOperation, createSubmittedSet, endedSets } from "../../../core/control/change-sets";
import { cutText } from "../../../core/cut-text";
import { isBasetideError } from "../../../core/errors";
import type { Outbox, QueuedTransaction } from "../../../core/replica";
import { DAY_MS } from "../../../core/time-units";
import { convertOrRefuse, MOST_SESSION_TEXT, writtenOperation, writtenOperations } from "./operations";

interface Reading {
  ctx: Pick<Context, "db" | "secrets">;
  baseId: string;
}

const LOST = { state: "unknown", record: null, error: "Basetide no longer has the change set" };

/** What a transaction becomes: a change set, nothing, or that later. */
type Taken = "made" | "later" | { not_applied: string };

/** `progress`: something was taken or has ended. `waiting`: something has no result yet. */
export type Found = "progress" | "waiting" | "nothing";

/**
 * Reads a part of the outbox: more may wait after progress.
 *
 * @throws BasetideError `control_unavailable`, `replica_unavailable`, `replica_busy`
 */
export async function readOutbox(reading: Reading, outbox: Outbox): Promise<Found> {
  let isProgress = false;
  let isLater = false;
  const made: string[] = [];
  for (const one of await outbox.queued()) {
    const taken = await take(reading, one);
    isLater = taken === "later";
    if (taken === "later") break;
    if (taken === "made") made.push(one.set);
    else await outbox.end(one.set, { state: "not_applied", record: null, error: taken.not_applied });
    isProgress = true;
  }
  if (made.length > 0) await outbox.take(made);
  const taken = await outbox.taken();
  const ended = await endedSets(reading.ctx, reading.baseId, taken);
  for (const [set, items] of ended) {
    const results = items.map(({ state, recordId: record, error }) => ({ state, record, error }));
    await outbox.end(set, results.length > 0 ? results : LOST);
  }
  if (isProgress || ended.size > 0) return "progress";
  return isLater || taken.length > 0 ? "waiting" : "nothing";
}

async function take(reading: Reading, queued: QueuedTransaction): Promise<Taken> {
  if (queued.ageMs > DAY_MS) return { not_applied: "Not sent for a day" };
  const operations = operationsOf(queued);
  if (!operations) return { not_applied: "The outbox has no such operations" };
  const is = await createSubmittedSet(reading.ctx, queued.set, {
    baseId: reading.baseId,
    sqlRole: queued.role,
    applicationName: cutText(queued.applicationName, MOST_SESSION_TEXT),
    note: cutText(queued.note, MOST_SESSION_TEXT),
    typecast: queued.typecast,
    operations,
  }).catch((error: unknown) => {
    if (isBasetideError(error, "invalid_request")) return { not_applied: error.message };
    throw error;
  });
  if (is === "full" || is === "away") return "later";
  return is === "off" ? { not_applied: "Writes with SQL were turned off before it was sent" } : is;
}

/** Returns undefined if they are not as our triggers write them down: on a customer's server, anybody may have. */
function operationsOf({ types, operations }: QueuedTransaction): AwaitedOperation[] | undefined {
  try {
    const typeOf = JSON.parse(types) as Record<string, string>;
    const written = writtenOperations.parse(operations.map((text) => JSON.parse(text)));
    return written.map((one) => convertOrRefuse(writtenOperation.parse(one), typeOf));
  } catch {
    return undefined;
  }
}
