/**
 * Carries out the writes of a SQL transaction, which waits: in their order, ten to a call, until one is refused.
 *
 * A call that the source has not answered stays recorded as sent. The transaction fails, and the runner of change sets
 * finds out what became of the call; it is not made again.
 */

import { linkedAbort, onAbort, withTimeout } from "../../../core/async";
import type { Context } from "../../../core/context";
import { decryptApiKey } from "../../../core/control/bases";
import {
  type AwaitedOperation,
  areById,
  type CellValues,
  choosingFiles,
  createSubmittedSet,
  differingCells,
  endApplied,
  endChangeSet,
  type HeldItem,
  keepingFiles,
  newAwaitedSet,
  type Outcome,
  otherForms,
  recordOutcomes,
  recordSent,
  releaseChangeSet,
  type SetHold,
  staleFiles,
  type WritesSource,
  withFiles,
} from "../../../core/control/change-sets";
import { CONTROL_PATIENCE_MS } from "../../../core/keys";
import type { Answer, BaseCalls, Failure } from "../change-sets/base-calls";
import { firstBatch, untilRepeated } from "../change-sets/batches";
import { holdSet } from "../change-sets/hold";
import { refusalState, type SqlError, UNSENT, unsentState } from "./sqlstates";

/** Records that are read with one call. */
const READ_AT_ONCE = 100;
/** Records that an error names. */
const MOST_NAMED = 20;

export interface SqlWrites {
  baseId: string;
  sqlRole: string;
  applicationName: string;
  note: string;
  typecast: boolean;
  /** The id of the set that they become, which is carried out in the background; undefined: the client waits. */
  submitted: string | undefined;
  operations: AwaitedOperation[];
}

/** Of all operations: the records, in their order. */
export interface MadeWrites {
  set: string;
  records: string[];
  is_pending: boolean;
}

interface Carrying {
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">;
  /** Where the writes of each base went last, by its id. */
  lastSources: Map<string, WritesSource>;
  callsOf(sourceBaseId: string, apiKey: string, stop: AbortSignal): BaseCalls;
  /** The client is gone: nothing more is sent. */
  gone: AbortSignal;
  /** Gets what is done when the client has its answer. */
  later(work: Promise<void>): void;
}

const IS_OFF: SqlError = {
  sqlstate: "55000",
  message: "SQL writes are off for this base, or it is being moved or deleted: nothing was sent to Airtable",
};
const TOO_MANY: SqlError = {
  sqlstate: "53400",
  message: "Too many change sets of this base wait: nothing was submitted",
  hint: "Repeat the transaction when some have ended.",
};
const STALE = {
  sqlstate: "40001",
  detail: "HTTP 200 STALE",
  hint: "Read the row again, and repeat the transaction.",
} as const;
const NOT_RECORDED: SqlError = {
  sqlstate: UNSENT,
  message: "Basetide cannot record the writes at the moment: nothing was sent to Airtable",
  hint: "It is safe to repeat the transaction.",
};

/** @throws BasetideError `control_unavailable`, `secret_unreadable`: calls may have been sent, or the set submitted */
export async function carryOutWrites(carrying: Carrying, asked: SqlWrites): Promise<MadeWrites | SqlError> {
  const { ctx } = carrying;
  if (asked.submitted === undefined) return carryOutAwaited(carrying, asked);
  const is = await createSubmittedSet(ctx, asked.submitted, asked);
  if (is === "made") return { set: asked.submitted, records: [], is_pending: false };
  return is === "full" ? TOO_MANY : IS_OFF;
}

function notRecorded({ log }: Carrying["ctx"], { baseId }: SqlWrites, error: unknown): SqlError {
  log.warn({ error, baseId }, "a SQL write could not be recorded");
  return NOT_RECORDED;
}

/**
 * The first call is prepared while the set is recorded, for where the last writes of the base went. It is sent once the set is
 * recorded, if the writes still go there.
 */
async function carryOutAwaited(
  { ctx, lastSources, callsOf, gone, later }: Carrying,
  asked: SqlWrites,
): Promise<MadeWrites | SqlError> {
  const { baseId, operations, typecast } = asked;
  const isReadFirst = operations.some(
    ({ expected, fields }) => expected !== undefined || keepingFiles(fields).length > 0,
  );
  const first = firstBatch(operations.map(asItem));
  // Before rows are read, nothing is sent.
  const { set, items, record } = newAwaitedSet(ctx, { ...asked, sending: isReadFirst ? 0 : first.length });
  using over = linkedAbort(gone);
  const callsTo = ({ sourceBaseId, encryptedApiKey }: WritesSource) =>
    callsOf(sourceBaseId, decryptApiKey(ctx, { id: baseId, encryptedApiKey }), over.signal);
  const expected = isReadFirst ? undefined : lastSources.get(baseId);
  const expectedCalls = expected && callsTo(expected);
  const recording = record();
  const isAsExpected = withTimeout(
    CONTROL_PATIENCE_MS,
    () => false,
    recording.then(
      (source) => JSON.stringify(source) === JSON.stringify(expected),
      () => false,
    ),
  );
  const early = expectedCalls?.write(first[0]!.operation, first[0]!.table, first, typecast, isAsExpected);
  early?.catch(() => {});
  const source = await recording.catch((error: unknown) => notRecorded(ctx, asked, error));
  if (source === undefined) lastSources.delete(baseId);
  if (source === undefined) return IS_OFF;
  if ("sqlstate" in source) return source;
  using hold = holdSet(ctx, set, gone);
  onAbort(hold.signal, () => over.abort());
  const isEarly = early !== undefined && (await isAsExpected);
  const calls = isEarly ? expectedCalls! : callsTo(source);
  // Its key can be read.
  lastSources.set(baseId, source);
  const run: Run = {
    ctx,
    set,
    calls,
    stop: over.signal,
    typecast,
    items,
    early: isEarly ? early : undefined,
    made: [],
    last: [],
    isPending: false,
    isOpen: false,
  };
  try {
    const error = (await compare(run)) ?? (await sendAll(run));
    // A set whose last call has no answer is the runner's.
    if (run.isOpen) await releaseChangeSet(ctx.db, set);
    else if (error) await endChangeSet(ctx.db, set);
    else later(recordEnd(run));
    return error ?? { set: set.id, records: run.made, is_pending: run.isPending };
  } catch (error) {
    await releaseChangeSet(ctx.db, set).catch(() => {});
    throw error;
  }
}

interface Run {
  ctx: Pick<Context, "db" | "secrets" | "log">;
  set: SetHold;
  calls: BaseCalls;
  /** Aborted when nothing more must be sent. */
  stop: AbortSignal;
  typecast: boolean;
  items: HeldItem[];
  /** The answer to the first call, if it was prepared while the set was recorded. */
  early: Promise<Answer> | undefined;
  made: string[];
  /** The operations of the last call, which are not recorded yet. */
  last: { id: string; recordId: string; after: CellValues | undefined }[];
  isPending: boolean;
  /** A call has no answer. */
  isOpen: boolean;
}

/**
 * Records that everything was made: the client knows it, so its COMMIT does not wait for this, nor fail because of it. What is
 * not recorded is found out by the runner of change sets, as after a crash.
 */
async function recordEnd({ ctx, set, last }: Run): Promise<void> {
  try {
    await endApplied(ctx, set, last);
  } catch (error) {
    ctx.log.warn({ error, changeSet: set.id }, "the end of a SQL write could not be recorded");
    await releaseChangeSet(ctx.db, set).catch(() => {});
  }
}

/** What the transaction has changed is not what the client knows, so that it must not repeat it. */
const UNKNOWN = "08007";

function asItem(operation: AwaitedOperation, position: number): HeldItem {
  const { table, record, fields, expected } = operation;
  return {
    id: "",
    position,
    operation: operation.operation,
    table,
    recordId: record ?? null,
    cells: fields,
    expected,
    state: "waiting",
    sentAgoMs: null,
  };
}

/** Reads what the records of these operations, which are of one table, have now. */
async function readNow(run: Run, items: HeldItem[]): Promise<Map<string, CellValues> | SqlError> {
  const [{ table } = { table: "" }] = items;
  const read = await run.calls.records(
    table,
    items.map(({ recordId }) => recordId!),
    items.some(({ cells, expected }) => areById(cells ?? expected ?? {})),
  );
  if (Array.isArray(read)) return new Map(read.map(({ id, fields }) => [id, fields]));
  // It writes nothing.
  return failed(run, items, read.kind === "unknown" ? { ...read, kind: "unsent" } : read);
}

/** Reads the records that must not have changed, before anything is sent. */
async function compare(run: Run): Promise<SqlError | undefined> {
  const checked = run.items.filter(
    ({ expected, cells }) => expected !== undefined || choosingFiles(cells).length > 0,
  );
  for (const group of Object.values(Object.groupBy(checked, ({ table }) => table))) {
    for (let from = 0; from < group!.length; from += READ_AT_ONCE) {
      const part = group!.slice(from, from + READ_AT_ONCE);
      const now = await readNow(run, part);
      if (!(now instanceof Map)) return now;
      for (const item of part) {
        const has = now.get(item.recordId!);
        const changed = has && [...differingCells(item.expected ?? {}, has), ...staleFiles(item.cells, has)];
        if (!changed || changed.length > 0) return refuseChanged(run, item, changed);
        // Files that are added are added to those that the record has when the change is sent.
        keepFiles(item, has, choosingFiles(item.cells));
      }
    }
  }
  return undefined;
}

/** @param changed keys of its fields; undefined: the record is gone */
async function refuseChanged(run: Run, item: HeldItem, changed: string[] | undefined): Promise<SqlError> {
  const { recordId, table } = item;
  const error = changed
    ? { ...STALE, message: `The record ${recordId} has other values in Airtable than in SQL` }
    : {
        sqlstate: "P0002",
        message: `The record ${recordId} does not exist`,
        detail: "HTTP 200 ROW_DOES_NOT_EXIST",
      };
  await end(run, [item], {
    state: "refused",
    errorType: changed ? "STALE" : "ROW_DOES_NOT_EXIST",
    error: error.message,
  });
  return { ...error, detail: detailOf(run, error.detail), table, field: changed?.[0] };
}

/** Completes the cells that keep files, for a record that has these. */
function keepFiles(item: HeldItem, has: CellValues, keys: string[]): void {
  if (keys.length === 0) return;
  const replaced = Object.fromEntries(keys.map((key) => [key, has[key] ?? null]));
  const chosen = Object.fromEntries(keys.map((key) => [key, item.cells![key]!]));
  item.before = { ...item.before, ...replaced };
  item.cells = { ...item.cells, ...withFiles(chosen, has) };
}

/** Completes the operations of the batch that add files, and of those after it that one call can read with them. */
async function addFiles(run: Run, batch: HeldItem[]): Promise<SqlError | undefined> {
  const adding = (items: HeldItem[]) => items.filter(({ cells }) => keepingFiles(cells).length > 0);
  if (adding(batch).length === 0) return undefined;
  const from = run.items.indexOf(batch[0]!);
  const next = untilRepeated(run.items.slice(from, from + READ_AT_ONCE));
  const items = adding(next).filter(({ table }) => table === batch[0]!.table);
  const now = await readNow(run, items);
  if (!(now instanceof Map)) return now;
  for (const item of items) {
    const has = now.get(item.recordId!);
    if (has) keepFiles(item, has, keepingFiles(item.cells));
    else if (batch.includes(item)) return refuseChanged(run, item, undefined);
  }
  return undefined;
}

async function sendAll(run: Run): Promise<SqlError | undefined> {
  const { ctx, set, items } = run;
  for (let from = 0; from < items.length; ) {
    const batch = firstBatch(items.slice(from, from + READ_AT_ONCE));
    const notRead = await addFiles(run, batch);
    if (notRead) return notRead;
    const [{ operation, table, state } = { operation: "create" as const, table: "", state: "" }] = batch;
    const begun = from === 0 ? run.early : undefined;
    const isRecorded =
      state === "sent" ||
      (await recordSent(
        ctx,
        set,
        batch.map(({ id, before }) => ({ id, before })),
      ));
    if (!begun && (!isRecorded || run.stop.aborted)) return failed(run, batch, NOT_HELD);
    const answer = await (begun ?? run.calls.write(operation, table, batch, run.typecast));
    if (answer.kind !== "made") return failed(run, batch, answer);
    const records = answer.body.records as { id: string; fields?: CellValues }[] | undefined;
    if (records?.length !== batch.length)
      return failed(run, batch, {
        kind: "unknown",
        status: 200,
        type: "",
        afterMs: 0,
        message: "Airtable's answer has other records",
      });
    const applied = batch.map(({ id, cells }, at) => {
      const { id: recordId, fields } = records[at]!;
      return { id, recordId, after: cells && fields ? otherForms(cells, fields) : undefined };
    });
    from += batch.length;
    if (from < items.length)
      await recordOutcomes(
        ctx,
        set.id,
        applied.map((one) => ({ ...one, state: "applied" })),
      );
    else run.last = applied;
    run.made.push(...records.map(({ id }) => id));
    run.isPending ||= answer.isPending;
  }
  return undefined;
}

const NOT_HELD: Failure = {
  kind: "unsent",
  status: 0,
  type: "",
  afterMs: 0,
  message: "The transaction was interrupted before all of it was sent",
};

/** Records how the batch failed, and that the rest is not made. */
async function failed(run: Run, batch: HeldItem[], answer: Failure): Promise<SqlError> {
  const { status, type, message } = answer;
  const said = sourceError(status, type);
  const [{ table } = { table: "" }] = batch;
  const field = fieldIn(message, batch);
  const error = { message, table, ...(field === undefined ? {} : { field }) };
  if (answer.kind === "refused") {
    await end(run, batch, { state: "refused", errorType: type, error: message });
    return { ...error, ...refusalState(status, type, message), detail: detailOf(run, said) };
  }
  if (answer.kind === "unsent") {
    await end(run, batch, { state: "not_applied", errorType: type, error: message });
    const sqlstate = unsentState(status, type);
    // Clients repeat a transaction of which nothing was sent.
    const isPartlySent = sqlstate === UNSENT && run.made.length > 0;
    return { ...error, sqlstate: isPartlySent ? UNKNOWN : sqlstate, detail: detailOf(run, said) };
  }
  run.isOpen = true;
  await end(run, [], { state: "not_applied" }, batch);
  return {
    ...error,
    sqlstate: UNKNOWN,
    message: `Airtable may have made the change: ${message}`,
    detail: detailOf(run, `${said} ${run.set.id}`.trim()),
    hint: "write.log shows what became of it.",
  };
}

const sourceError = (status: number, type: string) =>
  [status > 0 ? `HTTP ${status}` : "", type].filter(Boolean).join(" ");

/** @param left operations that keep their state */
async function end(
  { ctx, set, items, made }: Run,
  batch: HeldItem[],
  outcome: Omit<Outcome, "id">,
  left: HeldItem[] = [],
): Promise<void> {
  const inBatch = new Set(batch);
  const rest = items.slice(made.length).filter((item) => !left.includes(item));
  await recordOutcomes(
    ctx,
    set.id,
    rest.map((item) => ({
      id: item.id,
      ...(inBatch.has(item) ? outcome : { state: "not_applied" as const }),
    })),
  );
}

function detailOf({ made }: Run, said: string): string {
  if (made.length === 0) return said;
  const more = made.length > MOST_NAMED ? `, and ${made.length - MOST_NAMED} more` : "";
  return `${said}; Airtable had already made the changes of ${made.slice(0, MOST_NAMED).join(", ")}${more}`;
}

/** Returns the field that the message names, or the only one that was written. */
function fieldIn(message: string, batch: HeldItem[]): string | undefined {
  const fields = [...new Set(batch.flatMap(({ cells }) => Object.keys(cells ?? {})))];
  return fields.find((id) => message.includes(id)) ?? (fields.length === 1 ? fields[0] : undefined);
}
