/**
 * Brings into the replica what the feed has named: records are read again by their ids and applied as a sweep's would be.
 *
 * I1, I2. Every image has a read version that was taken before the source was asked, and the recent-writes log is told of each, changed
 * or not: a proxied write that began before loses to it, and is read again by the proxy.
 * L3. What hangs on a change is named before the change is settled, as the links were before it and are after it.
 */
import { BasetideError, isBasetideError } from "../../../errors";
import { latestReadVersions } from "../../../replica";
import type { RecordPage, SourceConnection, SourceRecord, SourceTable } from "../../../source";
import { applyRecords, ask, listByIds, removeRecords } from "../../engine";
import type { DirtyBatch } from "../../state";
import { fingerprintIn, MassChange, type TableCache, tableCache } from "../../state";
import { changedCells, type IdsByTable } from "./dependents";
import { freshReadVersion } from "./fresh-read-version";
import type { Live } from "./live";

/**
 * A record that is named and not there may have been deleted since, which the feed tells, or the source may have
 * answered "no records" once more, as sources do: it is looked for again after these times, ms.
 */
const ABSENT_MS: readonly number[] = [2000, 15_000];

/** Removes what the feed says is destroyed; what somebody wrote meanwhile is to be read again. */
export async function removeDestroyed(live: Live, batch: DirtyBatch): Promise<void> {
  const { tableId, entries } = batch;
  const ids = [...entries.keys()];
  const cursor = firstCursor(batch);
  nameAll(live, [await live.dependants.of(changedCells(tableId, entries))], cursor);
  await live.batches.started();
  // An older read version than needed only loses more often.
  const readVersion = Math.min(...[...entries.values()].map((entry) => entry.readVersion!));
  const { deleted, lost } = await removeRecords(live.foreground, liveCache(live, tableId), ids, readVersion);
  const isLost = new Set(lost);
  live.dirty.ack(
    batch,
    ids.filter((id) => !isLost.has(id)),
  );
  live.dirty.requeue(batch);
  live.batches.tally({ deleted });
}

/** Reads the records of the batch again, and names what hangs on them. */
export async function reread(live: Live, batch: DirtyBatch): Promise<void> {
  const { tableId, entries } = batch;
  const { dirty, dependants, batches } = live;
  const isNamed = [...entries.values()].some(({ why }) => why !== "dependent");
  const reader = isNamed ? live.namedReader : live.foreground.reader;
  const changed = changedCells(tableId, entries);
  const cursor = firstCursor(batch);
  reader.readVersions.renew();
  const since = await reader.readVersions.current();
  using latest = freshReadVersion(reader, since);
  const source = sourceTable(live, tableId);
  // Nothing else is in the way of the request: what the links were like is asked for meanwhile.
  const before = dependants.of(changed);
  const [pages, reached] = await bothOf(
    listByIds(latest.reader, source, [...entries.keys()], "records"),
    before,
  );
  const readVersion = latest.value;
  await batches.started();
  const { fresh, lost } = await apply(live, tableId, pages, readVersion);
  for (const id of await shownSince(live, tableId, lost, since)) lost.delete(id);
  // All at once, so that none is read twice.
  nameAll(live, [reached, await dependants.of(changed, fresh)], cursor);
  dirty.ack(
    batch,
    [...fresh.keys()].filter((id) => !lost.has(id)),
  );
  dirty.requeue(batch, lost);
  await judgeAbsent(live, batch, fresh.size > 0, readVersion);
}

/** Writes what was read, and counts it as seen by a sweep that may be under way. */
async function apply(live: Live, tableId: string, pages: RecordPage[], readVersion: number) {
  const fresh = new Map<string, SourceRecord>();
  const lost = new Set<string>();
  for (const page of pages) {
    const table = liveCache(live, tableId);
    await checkSchemaIfMany(live, table, page);
    const all = Array.from({ length: page.size }, (_, index) => index);
    const applied = await applyRecords(live.foreground, table, { page, readVersion }, all, true);
    for (const index of all) {
      table.fingerprints.see(page.id(index), 0n);
      fresh.set(page.id(index), page.record(index));
    }
    for (const id of applied.lost) lost.add(id);
    live.batches.tally({ seen: page.size, inserted: applied.inserted, updated: applied.updated });
  }
  return { fresh, lost };
}

/** Those whose images lost to one that was asked for after `since`, and so has what the feed had told of by then. */
async function shownSince(
  { foreground }: Live,
  tableId: string,
  lost: ReadonlySet<string>,
  since: number,
): Promise<string[]> {
  if (lost.size === 0) return [];
  const { readVersions } = await latestReadVersions(foreground.replica, tableId, [...lost]);
  return [...lost].filter((id) => (readVersions.get(id) ?? 0) > since);
}

/** I6. Many records that have changed at once may be a change of the schema that the feed has not told of yet. */
async function checkSchemaIfMany(live: Live, table: TableCache, page: RecordPage) {
  const { fingerprints } = table;
  const { spec } = table.live;
  const { massChanges, schemaTracker } = live;
  const massChange = massChanges.get(spec.tableId) ?? new MassChange();
  massChanges.set(spec.tableId, massChange);
  const changed = [];
  for (let index = 0; index < page.size; index++) {
    if (!fingerprints.isKnown(page.id(index), fingerprintIn(table, page, index))) changed.push(index);
  }
  if (massChange.isNews(page, changed, false)) await schemaTracker.refresh();
}

/** Those of the batch that were not there. */
async function judgeAbsent(
  live: Live,
  batch: DirtyBatch,
  isAnswered: boolean,
  readVersion: number,
): Promise<void> {
  const { dirty, batches } = live;
  const { absentMs = ABSENT_MS } = live.input;
  const gone = [];
  const lasting = [];
  for (const [id, { why, absences }] of batch.entries) {
    const waitMs = absentMs[absences];
    if (why === "destroyed") gone.push(id);
    // An answer that has other records is believed, where nobody has changed this one.
    else if (why === "dependent" && (isAnswered || waitMs === undefined)) dirty.ack(batch, [id]);
    else if (waitMs === undefined) lasting.push(id);
    else dirty.defer(batch, id, performance.now() + waitMs);
  }
  for (const id of lasting) {
    if (await isThere(live, batch.tableId, id)) dirty.defer(batch, id, performance.now() + absentMs.at(-1)!);
    else gone.push(id);
  }
  if (gone.length === 0) return;
  const { deleted, lost } = await removeRecords(
    live.foreground,
    liveCache(live, batch.tableId),
    gone,
    readVersion,
  );
  dirty.requeue(batch, lost);
  dirty.ack(batch, gone);
  batches.tally({ deleted });
}

/** What no list has for a while and nobody can read by its name is gone, also where the feed never said so. */
async function isThere({ foreground: { reader } }: Live, tableId: string, id: string): Promise<boolean> {
  const { sourceBaseId } = reader;
  const get = async (signal: AbortSignal, source: SourceConnection) => {
    try {
      return await source.getRecord(sourceBaseId, tableId, id, signal);
    } catch (error) {
      // May stand for a record that is gone.
      if (isBasetideError(error, "source_forbidden")) return null;
      throw error;
    }
  };
  return (await ask(reader, get, "records")) !== null;
}

/** What is read whole settles what was named of the table before, once what hangs on it has been named, too. */
export async function settledByReading(live: Live, tableId: string) {
  const { dirty, dependants } = live;
  const { sequence } = dirty;
  const named = dirty.direct(tableId);
  const changed = changedCells(tableId, named);
  const cursor = Math.min(...named.map(([, entry]) => entry.cursor));
  const before = await dependants.of(changed);
  return async ({ lost }: { lost: string[] }): Promise<void> => {
    nameAll(live, [before, await dependants.of(changed)], cursor);
    dirty.ackTable(tableId, sequence, new Set(lost));
    live.settled();
  };
}

/** Names dependants, as of the cursor of what they hang on. */
function nameAll({ dirty, missedChanges, wake }: Live, reached: IdsByTable[], cursor: number): void {
  for (const [tableId, ids] of reached.flatMap((tables) => [...tables])) {
    missedChanges.named(tableId, ids, performance.now());
    for (const id of ids) dirty.add(tableId, id, { cursor, why: "dependent", fields: null });
  }
  wake.notify();
}

function liveCache({ input, schemaTracker }: Live, tableId: string): TableCache {
  const { live } = schemaTracker.table(tableId);
  if (!live) throw goneTable(tableId);
  return tableCache(input.cache, live);
}

/** @throws BasetideError `source_schema_changed` when it has gone since the batch was taken */
function sourceTable({ schemaTracker }: Live, tableId: string): SourceTable {
  const { source } = schemaTracker.table(tableId);
  if (!source) throw goneTable(tableId);
  return source;
}

function goneTable(tableId: string): BasetideError {
  return new BasetideError("source_schema_changed", `The source has table ${tableId} no more.`);
}

function firstCursor({ entries }: DirtyBatch): number {
  return Math.min(...[...entries.values()].map((entry) => entry.cursor));
}

/** Both, or the first failure; the other one's is not left unhandled. */
async function bothOf<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  a.catch(() => {});
  b.catch(() => {});
  return Promise.all([a, b]);
}

/** Is it the ids themselves that the source's adapter does not take? Then asking again is of no use. */
export function isStrangeId(error: unknown): boolean {
  return isBasetideError(error, "invalid_request");
}
