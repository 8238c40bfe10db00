/**
 * Brings one replica to show a write that the source has made.
 *
 * I1. It says `shown` only when the replica shows the answer's image of every record, or something newer: an image
 * that lost is read anew, with a ticket of its own, until one wins.
 */
import { isBasetideError } from "../errors";
import type { SourceRecord } from "../source/types";
import type { AnsweredRecord, WriteAnswer } from "./answer";
import type { ConnectedBase } from "./connected-bases";
import type { WritesContext } from "./context";
import type { WriteMetrics } from "./metrics";
import type { ImagesOfRecords, ReplicaHandle } from "./replica-handle";
import type { RequestLook } from "./schema-look";
import { type Asking, sourceReader } from "./source-reader";
import { type TableView, viewTable } from "./table-view";

/** A schema of the source that was asked for this long ago, ms, knows the names of answers given now. */
const SCHEMA_FRESH_MS = 5000;
/** Shapes may change while images are mapped, but not at every try. */
const MAX_TRIES = 20;

export interface Write {
  /** Whatever names the table: its id, its name, or the id of one of its fields. */
  tableRef: string;
  /** Every record that was written. */
  ids: string[];
  /** What the source answered; null where that is not known: the records are read. */
  answer: WriteAnswer | null;
}

/**
 * `shown`: SQL has it. `kept`: SQL will have it with the table, which is not built yet. `no_table`: neither the replica
 * nor the source knows the table.
 */
export type Showing = "shown" | "kept" | "no_table";

export interface ShowContext extends WritesContext {
  writeMetrics: WriteMetrics;
  requestLook: RequestLook;
}

/**
 * @param ticket taken before the source was asked to write; null if there was none, and the records are read anew
 * @param asking how records are read anew
 * @throws BasetideError `replica_unavailable`, or why the source could not be read
 */
export async function showWrite(
  ctx: ShowContext,
  base: ConnectedBase,
  handle: ReplicaHandle,
  write: Write,
  ticket: number | null,
  asking: Asking,
): Promise<Showing> {
  const source = sourceReader(ctx, base, asking);
  const askSchema = async () => {
    const known = handle.schema;
    if (known && performance.now() - known.at < SCHEMA_FRESH_MS) return known.value;
    const at = performance.now();
    handle.schema = { value: await source.schema(), at };
    return handle.schema.value;
  };

  let images = write.answer && ticket !== null ? { ticket, ...write.answer } : null;
  let ids = write.ids;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const view = await viewTable(handle, write.tableRef, keysOf(images?.records ?? []), askSchema);
    if (!view) return "no_table";
    if (view.isOutdated) ctx.requestLook([base.id]);
    if (!images || !view.isComplete) {
      const fresh = await handle.ticket();
      images = { ticket: fresh, ...(await source.records(view.tableId, ids)) };
    }
    const outcome = await applyTo(handle, view, byFieldId(images, view));
    if (outcome === "shape_changed") {
      await handle.reloadTables();
      handle.schema = undefined;
      continue;
    }
    if (outcome.length === 0) return view.live ? "shown" : "kept";
    ctx.writeMetrics.lost(outcome.length);
    ids = outcome;
    images = null;
  }
  throw new Error(`A write does not get through to table ${write.tableRef} after ${MAX_TRIES} tries`);
}

/** @returns the ids whose image lost */
async function applyTo(
  handle: ReplicaHandle,
  view: TableView,
  images: ImagesOfRecords,
): Promise<string[] | "shape_changed"> {
  try {
    if (view.live) return (await handle.apply(view.live, images)).lost;
    return await handle.note(view.tableId, images);
  } catch (error) {
    if (isBasetideError(error, "shape_changed")) return "shape_changed";
    throw error;
  }
}

function keysOf(records: AnsweredRecord[]): Set<string> {
  return new Set(records.flatMap((record) => Object.keys(record.fields)));
}

/** What no key is known for is left out; a whole record's image comes only from a view that knows every key. */
function byFieldId({ ticket, records, gone }: ImagesOfRecords, view: TableView): ImagesOfRecords {
  return {
    ticket,
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
