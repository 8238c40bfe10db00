/**
 * Carries out one change set, in the order of its operations, ten to a call.
 *
 * An operation is recorded as sent before its request, and gets its result after the answer. If there was no answer (this
 * process died, or the source did not answer), the source is asked whether it has made it, after the time for which the proxy
 * waits for an answer: a late request has arrived by then. An update or a delete that it has not made is sent again; so is a
 * create, unless a record that was created since may be it.
 */
import { wait } from "../../../core/async";
import type { Context } from "../../../core/context";
import {
  addsFilesByUrl,
  areById,
  areCreating,
  type CellValues,
  couldBecome,
  differingCells,
  endChangeSet,
  GIVEN_UP_MS,
  type HeldItem,
  type HeldSet,
  knownRecords,
  linksIn,
  madeRecords,
  type Outcome,
  otherForms,
  recordOutcomes,
  recordSent,
  type SetRest,
  staleFiles,
  unfinishedItems,
  withFiles,
} from "../../../core/control/change-sets";
import { BasetideError } from "../../../core/errors";
import { MINUTE_MS, SECOND_MS } from "../../../core/time-units";
import type { BaseCalls, Failure, ReadRecord, TableFacts } from "./base-calls";
import { firstBatch, untilRepeated, withLinks } from "./batches";
import { holdSet } from "./hold";

/** Operations that are prepared together: one call reads as many records. */
const PREPARED = 100;
/** The source's times have a resolution of one second, and so has what is known of its clock. */
const CLOCK_MS = 2 * SECOND_MS;
/** Statuses with which the source refuses a call because of one of its records. */
const OF_ONE_RECORD = new Set([404, 413, 422]);

interface CarryingOut {
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">;
  set: HeldSet;
  /** @param stop takes requests back that wait to be sent */
  callsOf: (stop: AbortSignal) => BaseCalls;
  stop: AbortSignal;
}

/**
 * Returns when the set has ended, or has to rest.
 *
 * @throws BasetideError `lease_lost` if another proxy has it, `sync_stopped`, `control_unavailable`
 */
export async function carryOut({ ctx, set, callsOf, stop }: CarryingOut): Promise<SetRest | undefined> {
  const { db } = ctx;
  using hold = holdSet(ctx, set, stop, set.problem);
  const calls = callsOf(hold.signal);
  /** Waits because of `why`, which people see meanwhile. */
  const waitFor = async (ms: number, why: string) => {
    await hold.renew(why);
    await wait(ms, hold.signal);
  };
  const settled = (outcomes: Outcome[]) =>
    outcomes.length === 0
      ? Promise.resolve()
      : recordOutcomes(ctx, set.id, set.isAwaited ? outcomes.map(asLeft) : outcomes);
  const run: Run = { ctx, set, calls, rest: undefined, waitFor, settled };
  const lastMs = performance.now() + GIVEN_UP_MS - set.decidedAgoMs;
  const because = set.problem && `: ${set.problem}`;
  try {
    for (;;) {
      hold.signal.throwIfAborted();
      if (run.rest) return run.rest;
      const askedAtMs = Date.now();
      const items = await unfinishedItems(ctx, set.id, PREPARED);
      if (items.length === 0) {
        await endChangeSet(db, set);
        return undefined;
      }
      const sent = items.filter(({ state }) => state === "sent");
      if (sent.length > 0 && sent.every(({ sentAgoMs }) => (sentAgoMs ?? 0) > GIVEN_UP_MS))
        await settled(
          sent.map(({ id }) => ({ id, state: "unknown", error: `Not found out for a day${because}` })),
        );
      else if (sent.length > 0) await settleSent(run, sent, askedAtMs);
      else if (set.isAwaited) await settled(items.map(({ id }) => ({ id, state: "waiting" })));
      else if (performance.now() < lastMs) await sendInTurn(run, untilRepeated(items));
      else
        await settled(
          items.map(({ id }) => ({ id, state: "not_applied", error: `Not sent for a day${because}` })),
        );
    }
  } catch (error) {
    throw hold.isLost ? new BasetideError("lease_lost") : error;
  }
}

/** What the client that waited for a set has left is not made. */
function asLeft(outcome: Outcome): Outcome {
  return outcome.state === "waiting"
    ? { error: "The transaction ended before it was sent", ...outcome, state: "not_applied" }
    : outcome;
}

interface Run extends Pick<CarryingOut, "ctx" | "set"> {
  calls: BaseCalls;
  /** Set: the set cannot continue now. */
  rest: SetRest | undefined;
  waitFor(ms: number, why: string): Promise<void>;
  settled(outcomes: Outcome[]): Promise<void>;
}

/** Sends the operations, which change each record once; returns early if the rest must be looked at again. */
async function sendInTurn(run: Run, items: HeldItem[]): Promise<void> {
  const before = await cellsBefore(run, items);
  if (!before) return;
  const refused = items.flatMap((item) => refusalOf(item, before));
  await run.settled(refused);
  const refusedIds = new Set(refused.map(({ id }) => id));
  let left = items.filter(({ id }) => !refusedIds.has(id));
  while (left.length > 0) {
    const batch = firstBatch(left);
    if (!(await sendBatch(run, batch, before))) return;
    left = left.slice(batch.length);
  }
}

/** What records have now, by record id; undefined: the record is gone. */
type Before = Map<string, CellValues | undefined>;

/** Reads the records that updates and deletes change. Returns undefined if they cannot be read now. */
async function cellsBefore(run: Run, items: HeldItem[]): Promise<Before | undefined> {
  const before: Before = new Map();
  const existing = items.filter(({ operation }) => operation !== "create");
  const isById = (item: HeldItem) => (item.operation === "delete" && !item.expected ? true : byId(item));
  const tables = existing.some(({ operation }) => operation === "delete")
    ? await run.calls.tables()
    : new Map<string, TableFacts>();
  if (!(tables instanceof Map) && tables.kind !== "refused") {
    await answeredBadly(run, tables, existing);
    return undefined;
  }
  for (const group of Object.values(
    Object.groupBy(existing, (item) => JSON.stringify([item.table, item.operation, isById(item)])),
  )) {
    const [{ table } = { table: "" }] = group!;
    const ids = group!.map(({ recordId }) => recordId!);
    const read = await run.calls.records(table, ids, isById(group![0]!));
    if (!Array.isArray(read)) {
      await answeredBadly(run, read, group!);
      return undefined;
    }
    // A record that comes back cannot be given these. Without the schema, the source refuses them then.
    const unwritable =
      tables instanceof Map && group![0]!.operation === "delete" ? tables.get(table)?.computed : undefined;
    const found = new Map(
      read.map(({ id, fields }) => [id, unwritable ? without(fields, unwritable) : fields]),
    );
    for (const id of ids) before.set(id, found.get(id));
  }
  return before;
}

const without = (cells: CellValues, keys: ReadonlySet<string>): CellValues =>
  Object.fromEntries(Object.entries(cells).filter(([key]) => !keys.has(key)));

const byId = ({ cells, expected }: HeldItem) => areById(cells ?? expected ?? {});

/** An answer to a read: the operations are refused, or tried again after a pause. What was sent may have been made. */
async function answeredBadly(run: Run, answer: Failure, items: HeldItem[]): Promise<void> {
  const { kind, type: errorType, message: error } = answer;
  if (kind === "refused")
    return run.settled(
      items.map(({ id, state }) => ({
        id,
        state: state === "sent" ? "unknown" : "refused",
        errorType,
        error,
      })),
    );
  run.rest = { ms: answer.afterMs, why: error };
}

function refusalOf(
  { id, operation, recordId, cells: written, expected }: HeldItem,
  before: Before,
): Outcome[] {
  if (operation === "create") return [];
  const cells = before.get(recordId!);
  if (!cells)
    return [{ id, state: "refused", errorType: "ROW_DOES_NOT_EXIST", error: "The record does not exist" }];
  const changed = [...differingCells(expected ?? {}, cells), ...staleFiles(written, cells)];
  if (changed.length === 0) return [];
  const error = `The record has other values than expected in ${changed.join(", ")}`;
  return [{ id, state: "refused", errorType: "STALE", error }];
}

/** @returns false if the rest must be looked at again, with what was sent */
async function sendBatch(run: Run, batch: HeldItem[], before: Before): Promise<boolean> {
  const { ctx, set, calls, settled } = run;
  const [{ operation, table } = { operation: "create" as const, table: "" }] = batch;
  const linked = [...new Set(batch.flatMap(({ cells }) => linksIn(cells)))];
  const made =
    linked.length > 0 ? await madeRecords(ctx.db, set.id, linked) : new Map<number, string | null>();
  const items = batch.map((item) => {
    const cells = withLinks(item.cells, made);
    return { ...item, cells: cells && withFiles(cells, before.get(item.recordId ?? "")) };
  });
  const lost = items.filter(({ cells }) => cells === null);
  if (lost.length > 0) {
    const error = "The record that it links to was not created";
    await settled(lost.map(({ id }) => ({ id, state: "refused", errorType: "LINK_NOT_CREATED", error })));
    return false;
  }
  const kept = batch.map((item) => ({ id: item.id, before: replacedBy(item, before) }));
  if (!(await recordSent(ctx, set, kept))) {
    // It was canceled, or another proxy has it: then the hold is lost.
    await run.waitFor(0, "");
    return false;
  }
  const sending = items.map(({ recordId, cells }) => ({ recordId, cells: cells ?? undefined }));
  const answer = await calls.write(operation, table, sending, set.typecast);
  if (answer.kind === "made") {
    const records = answer.body.records as { id: string; fields?: CellValues }[] | undefined;
    if (records?.length !== batch.length) return false;
    await settled(
      items.map(({ id, cells }, at) => {
        const { id: recordId, fields } = records[at]!;
        return {
          id,
          state: "applied",
          recordId,
          after: cells && fields ? otherForms(cells, fields) : undefined,
        };
      }),
    );
    return true;
  }
  if (answer.kind === "refused") {
    if (batch.length > 1 && OF_ONE_RECORD.has(answer.status)) {
      // One half is sent at a time: what was sent and has no result is one call.
      await settled(batch.map(({ id }) => ({ id, state: "waiting" })));
      const middle = Math.ceil(batch.length / 2);
      return (
        (await sendBatch(run, batch.slice(0, middle), before)) &&
        (await sendBatch(run, batch.slice(middle), before))
      );
    }
    const { type: errorType, message: error } = answer;
    await settled(batch.map(({ id }) => ({ id, state: "refused", errorType, error })));
    return true;
  }
  if (answer.kind === "unsent") {
    await settled(batch.map(({ id }) => ({ id, state: "waiting" })));
    run.rest = { ms: answer.afterMs, why: answer.message };
  }
  return false;
}

/** The cells of the record that the operation replaces; undefined for a create. */
function replacedBy({ operation, recordId, cells }: HeldItem, before: Before): CellValues | undefined {
  const had = recordId === null ? undefined : before.get(recordId);
  if (operation === "create" || !had) return undefined;
  if (operation === "delete") return had;
  return Object.fromEntries(Object.keys(cells!).map((key) => [key, had[key] ?? null]));
}

/**
 * Finds out what became of operations that were sent and have no result.
 *
 * @param askedAtMs when it was read how long ago they were sent
 */
async function settleSent(run: Run, items: HeldItem[], askedAtMs: number): Promise<void> {
  const leastAgoMs = Math.min(...items.map(({ sentAgoMs }) => sentAgoMs ?? 0));
  const settledMs = run.ctx.config.upstreamTimeoutMs;
  if (leastAgoMs < settledMs)
    return run.waitFor(
      settledMs - leastAgoMs,
      "Airtable did not answer: whether it has made the changes is looked up",
    );
  for (const group of Object.values(
    Object.groupBy(items, (item) => JSON.stringify([item.table, byId(item), item.operation === "create"])),
  )) {
    const [first] = group!;
    const isDone = await (first!.operation === "create"
      ? settleCreates(run, group!, askedAtMs)
      : settleChanges(run, group!));
    if (!isDone) return;
  }
}

async function settleChanges(run: Run, items: HeldItem[]): Promise<boolean> {
  const [{ table } = { table: "" }] = items;
  const read = await run.calls.records(
    table,
    items.map(({ recordId }) => recordId!),
    byId(items[0]!),
  );
  if (!Array.isArray(read)) return answeredBadly(run, read, items).then(() => false);
  const found = new Map(read.map((record) => [record.id, record.fields]));
  await run.settled(
    items.map(({ id, operation, recordId, cells: written, before }): Outcome => {
      const has = found.get(recordId!);
      if (operation === "delete") return { id, state: has ? "waiting" : "applied" };
      if (!has) return { id, state: "waiting" };
      const cells = withFiles(written!, before);
      const after = otherForms(cells, has);
      const isAsBefore = before && differingCells(before, has).length === 0;
      // Any file may be what became of a URL.
      const showsWrite = !addsFilesByUrl(cells) || (before && !isAsBefore);
      if (!after && showsWrite) return { id, state: "applied" };
      // Of an awaited set, SQL says what was there, in forms of its own: it has the URLs of files, too.
      const showsNone = isAsBefore && (after || !run.set.isAwaited);
      if (showsNone || !couldBecome(cells, has)) return { id, state: "waiting" };
      if (after && !run.set.isAwaited) return { id, state: "applied", after };
      const error = "Airtable has other values, which may come from this write";
      return { id, state: "unknown", errorType: "AMBIGUOUS", error };
    }),
  );
  return true;
}

async function settleCreates(run: Run, items: HeldItem[], askedAtMs: number): Promise<boolean> {
  const { ctx, set, calls } = run;
  const [{ table } = { table: "" }] = items;
  // After its answer, the source's clock is known.
  const facts = await calls.tables();
  if (!(facts instanceof Map) && facts.kind !== "refused")
    return answeredBadly(run, facts, items).then(() => false);
  const primary = facts instanceof Map ? facts.get(table)?.primary : undefined;
  const longestAgoMs = Math.max(...items.map(({ sentAgoMs }) => sentAgoMs ?? 0));
  const marginMs = calls.sourceAheadMs === undefined ? MINUTE_MS : CLOCK_MS;
  const sinceMs = askedAtMs + (calls.sourceAheadMs ?? 0) - longestAgoMs - marginMs;
  const read = await calls.createdSince(table, sinceMs, byId(items[0]!));
  if (!Array.isArray(read)) return answeredBadly(run, read, items).then(() => false);
  // Asked before which records are known: what has been made meanwhile is one or the other.
  const mayBeOthers = await areCreating(ctx.db, set, table, ctx.config.upstreamTimeoutMs);
  const known = await knownRecords(
    ctx.db,
    set.baseId,
    read.map(({ id }) => id),
  );
  const links = [...new Set(items.flatMap(({ cells }) => linksIn(cells)))];
  const made = links.length > 0 ? await madeRecords(ctx.db, set.id, links) : new Map<number, string | null>();
  const candidates = read.filter(
    ({ id, createdTime }) => !known.has(id) && Date.parse(createdTime) >= sinceMs - SECOND_MS,
  );
  const outcomes = matched(items, candidates, made, primary);
  if (mayBeOthers && outcomes.some(({ state }) => state !== "waiting")) {
    run.rest = { ms: SECOND_MS, why: "Another write is creating records of the table" };
    return false;
  }
  await run.settled(outcomes);
  return true;
}

/**
 * Matches creates, all of one call, with records that have their cells.
 *
 * A create is unknown if it fits more records than creates fit. So it is if no record has its cells, but one could be it, or
 * others of the call were made, which the source makes together: made again, it could be there twice.
 *
 * @param primary keys of the field by which people tell records apart
 */
function matched(
  items: HeldItem[],
  candidates: ReadRecord[],
  made: ReadonlyMap<number, string | null>,
  primary?: ReadonlySet<string>,
): Outcome[] {
  const free = new Set(candidates);
  const fitting = (item: HeldItem, isFit: (cells: CellValues, read: CellValues) => boolean) => {
    const cells = withLinks(item.cells, made);
    return [...free].filter(({ fields }) => cells && isFit(cells, fields));
  };
  const exactly = (item: HeldItem) =>
    fitting(item, (cells, read) => differingCells(cells, read).length === 0);
  const unknown = ({ id }: HeldItem, which: string, records: ReadRecord[]): Outcome => {
    const ids = records.map((record) => record.id);
    const error = [`Airtable has ${which}`, ...(ids.length > 0 ? [ids.join(", ")] : [])].join(": ");
    return { id, state: "unknown", errorType: "AMBIGUOUS", error };
  };
  const found = new Map<HeldItem, Outcome>();
  for (const [at, item] of items.entries()) {
    const records = exactly(item);
    const [record] = records;
    if (!record) continue;
    const others = items.slice(at).filter((other) => exactly(other).includes(record)).length;
    if (records.length > others) {
      found.set(item, unknown(item, `${records.length} new records with these values`, records));
    } else {
      free.delete(record);
      found.set(item, { id: item.id, state: "applied", recordId: record.id });
    }
  }
  // People and automations may have changed the others of its cells.
  const isNamed = (cells: CellValues, read: CellValues) => {
    const named = Object.entries(cells).filter(([key, cell]) => primary?.has(key) && cell);
    return named.length > 0 && differingCells(Object.fromEntries(named), read).length === 0;
  };
  return items.map((item) => {
    const outcome = found.get(item);
    if (outcome) return outcome;
    const records = fitting(item, (cells, read) => isNamed(cells, read) || couldBecome(cells, read));
    if (records.length > 0)
      return unknown(item, "new records that may be this one, with other values", records);
    if ([...found.values()].some(({ state }) => state === "applied"))
      return unknown(item, "made others of the same call, and has no record with these values", []);
    return { id: item.id, state: "waiting" };
  });
}
