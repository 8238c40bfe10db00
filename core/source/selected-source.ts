/**
 * A connection that leaves out what a selection does not copy, and hashes what it hashes: nothing above it ever gets
 * the rest.
 *
 * Each call still makes exactly one request, synchronously. Lists name the copied fields and the view, so that omitted
 * cells are not even transferred. An answer is filtered in any case: a single record always has all its cells.
 */
import { BasetideError } from "../errors";
import type { ChangeFeed, Dependents } from "./change-feed";
import type { CellHash } from "./hash-cell";
import {
  isTableCopied,
  type SourceSelection,
  selectedRecord,
  selectedSchema,
  type Treatments,
  treatmentsOf,
  viewOf,
} from "./selection";
import type {
  ListedPart,
  RecordPage,
  SourceConnection,
  SourceRecord,
  SourceSchema,
  SourceTable,
} from "./types";

/** A selection, and the hash of the base that it belongs to. */
export interface Selecting {
  selection: SourceSelection;
  hash: CellHash;
}

interface Filter extends Selecting {
  treatments: Treatments;
}

/** @param selecting undefined: everything is copied, and `source` itself is returned */
export function selectedSource(source: SourceConnection, selecting: Selecting | undefined): SourceConnection {
  return selecting
    ? filtered(source, { ...selecting, treatments: treatmentsOf(selecting.selection) })
    : source;
}

function filtered(source: SourceConnection, filter: Filter): SourceConnection {
  const { selection, treatments, hash } = filter;
  let feed: ChangeFeed | undefined;
  const hasViews = Object.values(selection.tables).some(({ viewId }) => viewId !== undefined);

  /** Makes the request for the copied part of the table, if it is copied at all. */
  const list = (
    table: SourceTable,
    request: (part: ListedPart) => Promise<RecordPage>,
  ): Promise<RecordPage> => {
    if (!isTableCopied(selection, table.id)) return Promise.resolve(EMPTY);
    if (table.isViewGone) return Promise.reject(viewGone(table));
    const isWhole = Object.keys(selection.tables[table.id]?.fields ?? {}).length === 0;
    const asked = request(partOf(table, filter));
    return isWhole ? asked : asked.then((page) => filteredPage(page, filter));
  };

  return {
    get connections() {
      return source.connections;
    },
    over: (held) => filtered(source.over(held), filter),
    // Most connections send one request that is not the feed's.
    get changeFeed() {
      feed ??= source.changeFeed && filteredFeed(source.changeFeed, treatments);
      return feed;
    },
    whoami: (signal) => source.whoami(signal),
    listBases: (signal) => source.listBases(signal),
    isRecordId: (id) => source.isRecordId(id),

    getSchema: (baseId, signal, { withViews = hasViews, known } = {}) =>
      source
        .getSchema(baseId, signal, { withViews, known })
        .then((schema) => selectedSchema(selection, schema, hash)),

    listPage: (baseId, table, options, signal) =>
      list(table, (part) => source.listPage(baseId, table, { ...options, ...part }, signal)),

    listByIds: (baseId, table, ids, options, signal) =>
      list(table, (part) => source.listByIds(baseId, table, ids, { ...options, ...part }, signal)),

    getRecord(baseId, tableId, recordId, signal) {
      if (!isTableCopied(selection, tableId)) return Promise.resolve(null);
      // Only a list tells whether a view shows the record.
      if (viewOf(selection, tableId) !== undefined) {
        const page = list(namedTable(tableId), (part) =>
          source.listByIds(baseId, namedTable(tableId), [recordId], part, signal),
        );
        return page.then((found) => {
          if (found.size > 0) return found.record(0);
          if (found.unreadable) throw unreadable(recordId);
          return null;
        });
      }
      return source
        .getRecord(baseId, tableId, recordId, signal)
        .then((record) => record && selectedRecord(record, treatments, hash));
    },
  };
}

/** @returns no fields if all are copied, or if it is not known which the table has */
function partOf({ id, fields, partial }: SourceTable, { selection, treatments }: Filter): ListedPart {
  const view = viewOf(selection, id);
  const omitted = Object.entries(selection.tables[id]?.fields ?? {}).filter(([, how]) => how === "omitted");
  if (omitted.length === 0 || partial === undefined) return { view };
  const copied = fields.map((field) => field.id).filter((fieldId) => treatments.get(fieldId) !== "omitted");
  // An empty list would request all fields.
  return { view, fields: copied.length > 0 ? copied : [omitted[0]![0]] };
}

/** A table of which only the id is known. */
export function namedTable(tableId: string): SourceTable {
  return { id: tableId, name: tableId, primaryFieldId: "", fields: [] };
}

const EMPTY: RecordPage = {
  size: 0,
  offset: undefined,
  firstId: undefined,
  digest: undefined,
  id: outside,
  fingerprint: outside,
  record: outside,
  hasAttachments: outside,
};

function outside(index: number): never {
  throw new RangeError(`The page has no records, none at ${index}`);
}

function viewGone({ name, viewId }: SourceTable): BasetideError {
  return new BasetideError(
    "view_gone",
    `The view ${viewId} of the table "${name}", whose records are copied, no longer exists in Airtable. Choose another view or all records on the page Copied data.`,
  );
}

function unreadable(recordId: string): BasetideError {
  return new BasetideError("source_bad_answer", `Airtable's record ${recordId} cannot be read`, {
    details: { isRecord: true },
  });
}

/** Fingerprints and the digest are of the answer as it was received: they stay in this process's memory. */
function filteredPage(page: RecordPage, { treatments, hash }: Filter): RecordPage {
  const records: (SourceRecord | undefined)[] = [];
  return {
    get size() {
      return page.size;
    },
    get unreadable() {
      return page.unreadable;
    },
    offset: page.offset,
    firstId: page.firstId,
    digest: page.digest,
    remembered: page.remembered,
    id: (index) => page.id(index),
    fingerprint: (index) => page.fingerprint(index),
    hasAttachments: (index) => page.hasAttachments(index),
    discard: () => page.discard?.(),
    record(index) {
      const record = records[index] ?? selectedRecord(page.record(index), treatments, hash);
      records[index] = record;
      return record;
    },
  };
}

/** Changes are reported for the whole base; they lead only to records that are copied. */
function filteredFeed(feed: ChangeFeed, treatments: Treatments): ChangeFeed {
  return {
    ...feed,
    dependents: (schema) => copiedDependents(feed.dependents(wholeOf(schema)), schema),
    changesByItself(schema, options) {
      const shown = new Set(
        schema.tables.flatMap(({ fields }) => fields.map(({ id }) => id)).filter((id) => !isOmitted(id)),
      );
      return (
        schema.tables.some(({ viewId }) => viewId !== undefined) ||
        feed.changesByItself(onlyShown(schema, shown), options) ||
        feed.hasHiddenDependencies(wholeOf(schema), (fieldId) => shown.has(fieldId))
      );
    },
  };

  function isOmitted(fieldId: string): boolean {
    return treatments.get(fieldId) === "omitted";
  }
}

/** Returns the copied fields with their original definitions, which a hashed field does not show. */
function onlyShown(schema: SourceSchema, shown: ReadonlySet<string>): SourceSchema {
  const { tables } = wholeOf(schema);
  return {
    tables: tables.map((table) => ({ ...table, fields: table.fields.filter(({ id }) => shown.has(id)) })),
  };
}

function wholeOf({ tables, whole = tables }: SourceSchema): SourceSchema {
  return { tables: whole };
}

function copiedDependents(all: Dependents, { tables }: SourceSchema): Dependents {
  const copied = new Set(tables.map(({ id }) => id));
  return {
    hops: (tableId, fieldId) => all.hops(tableId, fieldId).filter((hop) => copied.has(hop.tableId)),
    async records(changed, findLinking) {
      const found = await all.records(changed, findLinking);
      for (const tableId of found.keys()) if (!copied.has(tableId)) found.delete(tableId);
      return found;
    },
  };
}
