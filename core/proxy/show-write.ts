/**
 * Brings one replica to show a write that the source has made.
 *
 * I1. Returns `shown` only if the replica shows the answer's image of every record, or something newer: where an image
 * lost, `Rereads` waits for one that was requested after the answer.
 */
import { selectingOf } from "../control/bases";
import { isBasetideError } from "../errors";
import type { TableSpec } from "../replica";
import {
  isCellHash,
  type SourceRecord,
  type SourceSchema,
  selectedCells,
  treatmentsOf,
  viewOf,
} from "../source";
import type { AnsweredRecord, WriteAnswer } from "./answer";
import type { ConnectedBase } from "./connected-bases";
import type { WritesContext } from "./context";
import type { WriteMetrics } from "./metrics";
import type { ReplicaHandle, RowImages } from "./replica-handle";
import type { RecordReader } from "./rereads";
import { rightTable } from "./right-table";
import type { RequestSchemaCheck } from "./schema-check";
import { type Asking, type SourceReader, sourceReader } from "./source-reader";
import { type NamedTable, ofCatalog, ofSource, type TableView, viewTable } from "./table-view";

/** A schema requested from the source within this time knows the names in current answers, ms. */
const SCHEMA_FRESH_MS = 5000;
/** The schema may change while images are mapped, but not at every attempt. */
const MAX_TRIES = 20;

export interface Write {
  /** Names the table: its id, its name, or the id of one of its fields. */
  tableRef: string;
  /** Every record that was written. */
  ids: string[];
  /** The source's answer; null if it is unknown: the records are read. */
  answer: WriteAnswer | null;
  /** The records are new. */
  isCreation?: boolean;
  /** As `locateNamed` found it before the source was asked. */
  locatedIn?: string | undefined;
}

/**
 * `shown`: SQL has the write. `kept`: SQL will have it with the table, which is not built yet. `odd`: a cell does not fit
 * its column's type, which may have changed; a sync will show the write. `left_out`: the base does not copy the table.
 * `no_table`: neither the replica nor the source has the table.
 */
type Showing = "shown" | "kept" | "odd" | "left_out" | "no_table";

export interface ShowContext extends WritesContext {
  writeMetrics: WriteMetrics;
  requestSchemaCheck: RequestSchemaCheck;
}

/**
 * @param readVersion taken before the source was asked to write; null if there was none, and the records are read again
 * @param asking how records are read again
 * @throws BasetideError `replica_unavailable`, or the reason why the source could not be read
 */
export async function showWrite(
  ctx: ShowContext,
  base: ConnectedBase,
  handle: ReplicaHandle,
  write: Write,
  readVersion: number | null,
  asking: Asking,
): Promise<Showing> {
  const from = performance.now();
  const schemaSince = schemaAsker(handle, sourceReader(ctx, base, asking));
  const show = shower(ctx, base, handle, () => schemaSince(from - SCHEMA_FRESH_MS), selectedOf(ctx, base));
  const { ref, isMoved } = await tableOf(handle, write, () => schemaSince(from));
  if (isMoved) ctx.requestSchemaCheck([base.id]);
  const answered = write.answer && readVersion !== null ? { readVersion, ...write.answer } : null;
  const outcome = await show(ref, answered, write.ids);
  if (!outcome) return "no_table";
  const { tableId, lost, isLeftOut } = outcome;
  if (isLeftOut) return "left_out";
  const isLost = new Set(lost);
  if (answered && isLost.size < write.ids.length) {
    const shown = write.ids.filter((id) => !isLost.has(id));
    handle.rereads.applied(tableId, shown, answered.readVersion);
  }
  if (lost.length > 0) {
    const wanted = { tableId, ids: lost, since: await handle.readVersion(), caller: asking.caller ?? "" };
    if (!(await handle.rereads.shown(wanted, recordReader(ctx, base, handle, asking), asking.signal)))
      return "no_table";
  }
  if (write.ids.some((id) => (handle.oddAt.get(id) ?? 0) >= from)) return "odd";
  return (await handle.tables()).has(tableId) ? "shown" : "kept";
}

async function tableOf(handle: ReplicaHandle, write: Write, askSchema: () => Promise<SourceSchema>) {
  for (let tries = 1; ; tries++) {
    try {
      return await rightTable(handle, write, askSchema);
    } catch (error) {
      if (!isBasetideError(error, "shape_changed") || tries === MAX_TRIES) throw error;
      await handle.reloadTables();
    }
  }
}

/** @returns a function for the source's schema, requested after a time (performance.now()) */
function schemaAsker(handle: ReplicaHandle, source: SourceReader) {
  return async (since: number) => {
    const known = handle.schema;
    if (known && known.at >= since) return known.value;
    const at = performance.now();
    handle.schema = { value: await source.schema(), at };
    return handle.schema.value;
  };
}

/** Reads records again, for this write and others: it continues after this write's time limit. */
function recordReader(
  ctx: ShowContext,
  base: ConnectedBase,
  handle: ReplicaHandle,
  asking: Asking,
): RecordReader {
  const source = (signal: AbortSignal) => sourceReader(ctx, base, { ...asking, signal });
  const askSchema = () => {
    const schemaSince = schemaAsker(handle, source(AbortSignal.timeout(ctx.config.upstreamTimeoutMs)));
    return schemaSince(performance.now() - SCHEMA_FRESH_MS);
  };
  // The source is asked for what the base copies only.
  const show = shower(ctx, base, handle, askSchema, (_, images) => images);
  return {
    read: (tableId, choose, signal) => source(signal).records(tableId, choose),
    apply: (tableId, images) => showRead({ handle, show, askSchema }, tableId, images),
  };
}

/** The table that images were applied to, and the records that have to be read again. */
interface Outcome {
  tableId: string;
  lost: string[];
  isLeftOut?: boolean;
}

/**
 * Reduces the images of a writer's answer, keyed by field id, to what the base copies; null: only the source can tell
 * whether the view whose records are copied shows them.
 */
type Selected = (tableId: string, images: RowImages) => RowImages | null;

function selectedOf(ctx: WritesContext, base: ConnectedBase): Selected {
  const selecting = selectingOf(ctx, base);
  if (!selecting) return (_, images) => images;
  const { selection, hash } = selecting;
  const treatments = treatmentsOf(selection);
  return (tableId, images) => {
    if (images.records.length > 0 && viewOf(selection, tableId) !== undefined) return null;
    const records = images.records.map((record) => ({
      ...record,
      fields: selectedCells(record.fields, treatments, hash),
    }));
    return { ...images, records };
  };
}

/**
 * Applies images to the table that `ref` names, even if its schema changes meanwhile; null: the table does not exist.
 */
type Show = (ref: string, images: RowImages | null, ids: string[]) => Promise<Outcome | null>;

function shower(
  ctx: ShowContext,
  base: ConnectedBase,
  handle: ReplicaHandle,
  askSchema: () => Promise<SourceSchema>,
  selected: Selected,
): Show {
  return async (ref, images, ids) => {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const view = await viewTable(handle, ref, keysOf(images?.records ?? []), askSchema, base.selection);
      if (!view) return null;
      const { tableId, isLeftOut } = view;
      if (isLeftOut) return { tableId, lost: [], isLeftOut };
      if (view.isOutdated) ctx.requestSchemaCheck([base.id]);
      const copied = images && view.isComplete ? selected(tableId, byFieldId(images, view)) : null;
      if (!copied) return { tableId, lost: ids };
      if (view.live && hasPlainCells(view.live.spec, copied.records)) {
        for (const id of ids) handle.oddAt.set(id, performance.now());
        return { tableId, lost: [] };
      }
      const applied = await applyTo(handle, view, copied);
      if (applied !== "shape_changed") {
        const { lost, odd } = applied;
        if (odd.length > 0) ctx.requestSchemaCheck([base.id]);
        if (lost.length > 0) ctx.writeMetrics.lost(lost.length);
        const isLost = new Set(lost);
        for (const id of odd) if (!isLost.has(id)) handle.oddAt.set(id, performance.now());
        return { tableId, lost };
      }
      await handle.reloadTables();
      handle.schema = undefined;
    }
    throw new Error(`A write could not be applied to table ${ref} after ${MAX_TRIES} attempts`);
  };
}

/**
 * Shows records that were read by their ids. The source returns a record by any table's name: a record that has fields
 * of another table is shown there, and is deleted from this one.
 *
 * @returns the ids whose image lost; null if the table does not exist
 */
async function showRead(
  { handle, show, askSchema }: { handle: ReplicaHandle; show: Show; askSchema: () => Promise<SourceSchema> },
  tableId: string,
  { readVersion, records, gone }: RowImages,
): Promise<string[] | null> {
  const tables = [...(await handle.tables()).values()].map(ofCatalog);
  const ownerOf = async ({ fields }: AnsweredRecord) => {
    if (Object.keys(fields).length === 0) return tableId;
    // The record may be in a table that is new to the replica too.
    const known = ownerIn(tables, fields);
    if (known !== undefined) return known;
    const { tables: copied, whole = copied } = await askSchema();
    return ownerIn(whole.map(ofSource), fields) ?? tableId;
  };
  const owners = await Promise.all(records.map(ownerOf));
  const byTable = Map.groupBy(records.keys(), (index) => owners[index]!);
  const here = (byTable.get(tableId) ?? []).map((index) => records[index]!);
  byTable.delete(tableId);
  const lost: string[] = [];
  for (const [other, indices] of byTable) {
    const misplaced = indices.map((index) => records[index]!);
    const ids = misplaced.map(({ id }) => id);
    gone = [...gone, ...ids];
    lost.push(...((await show(other, { readVersion, records: misplaced, gone: [] }, ids))?.lost ?? []));
  }
  const images = { readVersion, records: here, gone };
  const outcome = await show(tableId, images, [...gone, ...here.map(({ id }) => id)]);
  return outcome && [...new Set([...lost, ...outcome.lost])];
}

function ownerIn(tables: NamedTable[], fields: Record<string, unknown>): string | undefined {
  return tables.find((table) => table.fields.some(({ id }) => id in fields))?.tableId;
}

/** @returns the ids whose image lost, and those with cells that do not fit */
async function applyTo(
  handle: ReplicaHandle,
  view: TableView,
  images: RowImages,
): Promise<{ lost: string[]; odd: string[] } | "shape_changed"> {
  try {
    if (view.live) return await handle.apply(view.live, images, view.isByName);
    return { lost: await handle.defer(view.tableId, images), odd: [] };
  } catch (error) {
    if (isBasetideError(error, "shape_changed")) return "shape_changed";
    throw error;
  }
}

/**
 * Has a hashed column a cell that is not a hash? Then the selection has just changed, and either this process or the table
 * has an earlier one. A sync that knows the current one shows the records.
 */
function hasPlainCells({ columns }: TableSpec, records: SourceRecord[]): boolean {
  const hashed = columns.filter(({ type }) => type === "hashed");
  return records.some(({ fields }) =>
    hashed.some(({ fieldId }) => fields[fieldId] != null && !isCellHash(fields[fieldId])),
  );
}

function keysOf(records: AnsweredRecord[]): Set<string> {
  return new Set(records.flatMap((record) => Object.keys(record.fields)));
}

/** Omits cells with unknown keys. A whole record's image comes only from a view that knows every key. */
function byFieldId({ readVersion, records, gone }: RowImages, view: TableView): RowImages {
  return {
    readVersion,
    gone,
    records: records.map(({ id, createdTime, fields }): SourceRecord => {
      const cells: Record<string, unknown> = {};
      for (const [key, cell] of Object.entries(fields)) {
        const fieldId = view.fieldId(key);
        if (fieldId !== undefined) cells[fieldId] = cell;
      }
      return { id, createdTime, fields: cells };
    }),
  };
}
