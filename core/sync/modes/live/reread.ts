/**
 * Applies what the feed has named: reads records again by id and applies them like the records of a sweep.
 *
 * I1, I2. Every image has a read version that was taken before the source was asked, and is entered into the
 * recent-writes log, changed or not: a proxied write that began earlier loses to it, and the proxy reads its record
 * again.
 * L3. Dependents of a change are named before the change is acknowledged, by the links before the change and after it.
 */
import { BasetideError, isBasetideError } from "../../../errors";
import { latestReadVersions } from "../../../replica";
import type { RecordPage, SourceRecord } from "../../../source";
import { applyRecords, metered, removeRecords } from "../../engine";
import type { DirtyBatch } from "../../state";
import { fingerprintIn, MassChange, type TableCache, tableCache } from "../../state";
import { changedCells, type IdsByTable } from "./dependents";
import { freshReadVersion } from "./fresh-read-version";
import type { Live } from "./live";

/**
 * A named record that does not exist may have been deleted since, which the feed will report, or the source may have
 * answered "no records" for no reason, as sources do. It is read again after these times, ms.
 */
const ABSENT_MS: readonly number[] = [2000, 15_000];

/** Removes records that the feed reports as destroyed. A record that was written meanwhile is read again. */
export async function removeDestroyed(live: Live, batch: DirtyBatch): Promise<void> {
  const { tableId, entries } = batch;
  const ids = [...entries.keys()];
  const cursor = firstCursor(batch);
  nameAll(live, [await live.dependants.of(changedCells(tableId, entries))], cursor);
  await live.batches.started();
  // An older read version than necessary only loses more often.
  const readVersion = Math.min(...[...entries.values()].map((entry) => entry.readVersion!));
  const { table } = tableOf(live, tableId);
  const { deleted, lost } = await removeRecords(live.foreground, table, ids, readVersion);
  const isLost = new Set(lost);
  live.dirty.ack(
    batch,
    ids.filter((id) => !isLost.has(id)),
  );
  live.dirty.requeue(batch);
  live.batches.tally({ deleted });
}

/** Reads the records of the batch again, and names their dependents. */
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
  const { source } = tableOf(live, tableId);
  // The request does not depend on the previous links, so both are read concurrently.
  const [pages, reached] = await Promise.all([
    metered(latest.reader, "records").listByIds(source, [...entries.keys()]),
    dependants.of(changed),
  ]);
  const readVersion = latest.value;
  await batches.started();
  const { fresh, lost } = await apply(live, tableId, pages, readVersion);
  for (const id of await shownSince(live, tableId, lost, since)) lost.delete(id);
  // All at once, so that no dependent is read twice.
  nameAll(live, [reached, await dependants.of(changed, fresh)], cursor);
  dirty.ack(
    batch,
    [...fresh.keys()].filter((id) => !lost.has(id)),
  );
  dirty.requeue(batch, lost);
  await judgeAbsent(live, batch, fresh.size > 0, readVersion);
}

/** Writes the records that were read, and counts them as seen by a sweep that may be running. */
async function apply(live: Live, tableId: string, pages: RecordPage[], readVersion: number) {
  const fresh = new Map<string, SourceRecord>();
  const lost = new Set<string>();
  for (const page of pages) {
    const { table } = tableOf(live, tableId);
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

/**
 * Returns the records whose images lost to one that was requested after `since`, and so includes the changes that the
 * feed had reported by then.
 */
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

/**
 * I6. Many records that have changed at once may indicate a change of the schema that the feed has not reported yet.
 */
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

/** Decides what to do with the records of the batch that were not found. */
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
    // An answer with other records is trusted if no one has changed this record.
    else if (why === "dependent" && (isAnswered || waitMs === undefined)) dirty.ack(batch, [id]);
    else if (waitMs === undefined) lasting.push(id);
    else dirty.defer(batch, id, performance.now() + waitMs);
  }
  for (const id of lasting) {
    if (await isThere(live, batch.tableId, id)) dirty.defer(batch, id, performance.now() + absentMs.at(-1)!);
    else gone.push(id);
  }
  if (gone.length === 0) return;
  const { table } = tableOf(live, batch.tableId);
  const { deleted, lost } = await removeRecords(live.foreground, table, gone, readVersion);
  dirty.requeue(batch, lost);
  dirty.ack(batch, gone);
  batches.tally({ deleted });
}

/**
 * Requests one record by its id. A record that no list has contained for a while and that cannot be read by id is
 * gone, even if the feed never reported it.
 */
async function isThere({ foreground: { reader } }: Live, tableId: string, id: string): Promise<boolean> {
  return (await metered(reader, "records").findRecord(tableId, id)) !== null;
}

/**
 * Prepares a complete read of a table. The returned function acknowledges the entries that were named before the read,
 * after it has named their dependents.
 */
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

/** Names dependents, with the cursor of the changes that they depend on. */
function nameAll({ dirty, missedChanges, wake }: Live, reached: IdsByTable[], cursor: number): void {
  for (const [tableId, ids] of reached.flatMap((tables) => [...tables])) {
    missedChanges.named(tableId, ids, performance.now());
    for (const id of ids) dirty.add(tableId, id, { cursor, why: "dependent", fields: null });
  }
  wake.notify();
}

/** @throws BasetideError `source_schema_changed` when the table has gone since the batch was taken */
function tableOf({ input, schemaTracker }: Live, tableId: string) {
  const { source, live } = schemaTracker.table(tableId);
  if (source && live) return { source, table: tableCache(input.cache, live) };
  throw new BasetideError("source_schema_changed", `The source has table ${tableId} no more.`);
}

function firstCursor({ entries }: DirtyBatch): number {
  return Math.min(...[...entries.values()].map((entry) => entry.cursor));
}

/** Returns whether the source's adapter rejects the ids themselves: a retry would not help. */
export function isStrangeId(error: unknown): boolean {
  return isBasetideError(error, "invalid_request");
}
