/**
 * Carries out the writes of a SQL transaction, which waits: in their order, ten to a call, until one is refused.
 *
 * A call that the source has not answered stays recorded as sent. The transaction fails, and the runner of change sets
 * finds out what became of the call; it is not made again.
 */
import type { Context } from "../../../core/context";
import { decryptApiKey } from "../../../core/control/bases";
import {
  type AwaitedOperation,
  areById,
  createAwaitedSet,
  differingCells,
  endChangeSet,
  type HeldItem,
  type HeldSet,
  type Outcome,
  recordOutcomes,
  recordSent,
  releaseChangeSet,
} from "../../../core/control/change-sets";
import type { BaseCalls, Failure } from "../change-sets/base-calls";
import { firstBatch } from "../change-sets/batches";
import { holdSet } from "../change-sets/hold";
import { refusalState, type SqlError, unsentState } from "./sqlstates";

/** Records whose values are compared with one call. */
const COMPARED = 100;
/** Records that an error names. */
const MOST_NAMED = 20;

export interface AwaitedWrites {
  baseId: string;
  sqlRole: string;
  applicationName: string;
  note: string;
  typecast: boolean;
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
  callsOf(set: HeldSet, apiKey: string, stop: AbortSignal): BaseCalls;
  /** The client is gone: nothing more is sent. */
  gone: AbortSignal;
}

const IS_OFF: SqlError = {
  sqlstate: "55000",
  message: "SQL writes are off for this base, or it is being moved or deleted: nothing was sent to Airtable",
};
const NOT_RECORDED: SqlError = {
  sqlstate: "08006",
  message: "Basetide cannot record the writes at the moment: nothing was sent to Airtable",
  hint: "It is safe to repeat the transaction.",
};

/** @throws BasetideError `control_unavailable`, `secret_unreadable`: calls may have been sent */
export async function carryOutAwaited(
  { ctx, callsOf, gone }: Carrying,
  { operations, ...asked }: AwaitedWrites,
): Promise<MadeWrites | SqlError> {
  const isChecked = operations.some(({ expected }) => expected !== undefined);
  const created = await createAwaitedSet(ctx, {
    ...asked,
    operations,
    // Before rows are compared, nothing is sent.
    sending: isChecked ? 0 : firstBatch(operations.map(asItem)).length,
  }).catch((error: unknown) => {
    ctx.log.warn({ error, baseId: asked.baseId }, "a SQL write could not be recorded");
    return NOT_RECORDED;
  });
  if (!created) return IS_OFF;
  if ("sqlstate" in created) return created;
  const { set, items } = created;
  using hold = holdSet(ctx, set, gone);
  const apiKey = decryptApiKey(ctx, { id: set.baseId, encryptedApiKey: set.encryptedApiKey });
  const run: Run = { ctx, set, calls: callsOf(set, apiKey, hold.signal), items, made: [], isPending: false };
  try {
    const stale = isChecked ? await compare(run) : undefined;
    const error = stale ?? (await sendAll(run));
    // A set whose last call has no answer is the runner's.
    if (!error || !isUnknown(error)) await endChangeSet(ctx.db, set);
    else await releaseChangeSet(ctx.db, set);
    return error ?? { set: set.id, records: run.made, is_pending: run.isPending };
  } catch (error) {
    await releaseChangeSet(ctx.db, set).catch(() => {});
    throw error;
  }
}

interface Run {
  ctx: Pick<Context, "db" | "secrets">;
  set: HeldSet;
  calls: BaseCalls;
  items: HeldItem[];
  made: string[];
  isPending: boolean;
}

const UNKNOWN = "08007";
const isUnknown = ({ sqlstate }: SqlError) => sqlstate === UNKNOWN;

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

/** Reads the records whose rows must not have changed. */
async function compare(run: Run): Promise<SqlError | undefined> {
  const checked = run.items.filter(({ expected }) => expected !== undefined);
  for (const group of Object.values(Object.groupBy(checked, ({ table }) => table))) {
    for (let from = 0; from < group!.length; from += COMPARED) {
      const part = group!.slice(from, from + COMPARED);
      const [{ table } = { table: "" }] = part;
      const read = await run.calls.records(
        table,
        part.map(({ recordId }) => recordId!),
        part.some(({ expected }) => areById(expected!)),
      );
      if (!Array.isArray(read)) return failed(run, part, read);
      const found = new Map(read.map(({ id, fields }) => [id, fields]));
      for (const item of part) {
        const has = found.get(item.recordId!);
        const changed = has && differingCells(item.expected!, has);
        if (changed?.length === 0) continue;
        const refused = has
          ? {
              sqlstate: "40001",
              message: `The record ${item.recordId} has other values in Airtable than in SQL`,
              detail: "HTTP 200 STALE",
              hint: "Read the row again, and repeat the transaction.",
              field: changed![0],
            }
          : {
              sqlstate: "P0002",
              message: `The record ${item.recordId} does not exist`,
              detail: "HTTP 200 ROW_DOES_NOT_EXIST",
            };
        await end(run, [item], {
          state: "refused",
          errorType: has ? "STALE" : "ROW_DOES_NOT_EXIST",
          error: refused.message,
        });
        return { ...refused, table };
      }
    }
  }
  return undefined;
}

async function sendAll(run: Run): Promise<SqlError | undefined> {
  const { ctx, set, items } = run;
  for (let from = 0; from < items.length; ) {
    const batch = firstBatch(items.slice(from, from + COMPARED));
    const [{ operation, table, state } = { operation: "create" as const, table: "", state: "" }] = batch;
    if (state !== "sent") {
      const isSent = await recordSent(
        ctx,
        set,
        batch.map(({ id }) => ({ id, before: undefined })),
      );
      if (!isSent) return failed(run, batch, NOT_HELD);
    }
    const answer = await run.calls.write(operation, table, batch, set.typecast);
    if (answer.kind !== "made") return failed(run, batch, answer);
    const records = answer.body.records as { id: string }[] | undefined;
    if (records?.length !== batch.length)
      return failed(run, batch, {
        kind: "unknown",
        status: 200,
        type: "",
        afterMs: 0,
        message: "Airtable's answer has other records",
      });
    await recordOutcomes(
      ctx,
      set.id,
      batch.map(({ id }, at) => ({ id, state: "applied", recordId: records[at]!.id })),
    );
    run.made.push(...records.map(({ id }) => id));
    run.isPending ||= answer.isPending;
    from += batch.length;
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
  const said = [status > 0 ? `HTTP ${status}` : "", type].filter(Boolean).join(" ");
  const [{ table } = { table: "" }] = batch;
  const field = fieldIn(message, batch);
  const error = { message, table, ...(field === undefined ? {} : { field }) };
  if (answer.kind === "refused") {
    await end(run, batch, { state: "refused", errorType: type, error: message });
    return { ...error, ...refusalState(status, type, message), detail: detailOf(run, said) };
  }
  if (answer.kind === "unsent") {
    await end(run, batch, { state: "not_applied", errorType: type, error: message });
    return { ...error, sqlstate: unsentState(status, type), detail: detailOf(run, said) };
  }
  await end(run, [], { state: "not_applied" }, batch);
  return {
    ...error,
    sqlstate: UNKNOWN,
    message: `Airtable may have made the change: ${message}`,
    detail: detailOf(run, `${said} ${run.set.id}`.trim()),
    hint: "write.log shows what became of it.",
  };
}

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
