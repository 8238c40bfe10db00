/**
 * Runs one sync of a base: a schema check, then reads all tables concurrently, until the replica equals the source as
 * it was.
 *
 * I3. A sync counts as completed only when every table has been read from end to end, except for tables that cannot be
 * read while others can: those are listed in its report and with the base, and tried again by themselves.
 */
import { linkedAbort, wait, withTimeout } from "../../async";
import { asBasetideError, BasetideError, isBasetideError, nextStep } from "../../errors";
import { onlyAddsColumns, type TableSpec } from "../../replica";
import type { PlatformFacts, SourceTable, TableSize } from "../../source";
import { failSpan } from "../../trace";
import type { Progress, RunReport, SyncedBase } from "../host";
import {
  gravity,
  isWholeBases,
  MANY_TRIES,
  MOST_PATIENCE_MS,
  SHORTEST_MS,
  TICK_MS,
  TRIES,
  TURN_MS,
} from "../pacing";
import { type BaseCache, forgetRows, isOfTable, isRefusedRead, ofTable, tableCache } from "../state";
import { keepUp, type NotifiedChanges } from "./keep-up";
import { askFailing, watchAnswers } from "./patience";
import { countedSizes, ProgressBoard } from "./progress";
import type { Reader } from "./reader";
import { isRefusedChange, rebuildTable } from "./rebuild";
import { endSync, reportIssues, tableCounts } from "./report";
import { SchemaTracker, type SchemaTrackerOptions, type TableShape } from "./schema-tracker";
import { sizeEstimates } from "./size-estimates";
import { expectLogged, sweepTable, sweepWritten, type TableOutcome } from "./sweep";
import { type BegunSync, beginMarked, completeMarked, type NextSync } from "./sync-marks";
import { TableOrder } from "./table-order";

export interface SyncInput extends Omit<SchemaTrackerOptions, "reader" | "catalog"> {
  base: SyncedBase;
  /** A Reader without the parts that this sync creates itself. */
  reader: Omit<Reader, "counts" | "onFirstRequest">;
  /** The platform's filter; absent: no records are asked for besides those of the tables' lists. */
  modifiedSince?: ((sinceMs: number) => string) | undefined;
  /**
   * Resolves when records may be read; the schema is read meanwhile. Absent, or null: the source does not notify us of
   * changes.
   */
  opening?: Promise<NotifiedChanges | null> | undefined;
  /** Samples tables of unknown size; see `PlatformFacts`. */
  sample?: PlatformFacts["sample"];
  /** Returns whether people look at the progress of a first sync; absent: they do not. */
  isWatched?: () => boolean;
  /** What is known before a first sync, by table id. */
  sizes?: Readonly<Record<string, TableSize>>;
  /** True to rebuild every live table, whatever is cached about it. */
  isForced: boolean;
  /** Called often: whenever the progress of a first sync or a rebuild has changed. */
  onProgress: (progress: Progress) => void;
  /** The next sync may be hours away: a failing table that can be read again is read by this one. */
  restsAfter?: boolean;
  /** Given to syncs that follow each other in one lease: each prepares the next one, which saves a statement. */
  next?: NextSync | undefined;
}

/** Returns the report of a sync that starts now. */
export function newReport(): RunReport {
  return {
    kind: "sweep",
    startedAt: new Date(),
    completedAt: null,
    seen: 0,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 0,
    waitMs: 0,
  };
}

/**
 * Runs one sync. Failures are returned in the report.
 *
 * @throws BasetideError only `sync_stopped` and `lease_lost`, for which no report is needed
 */
export async function syncBase(input: SyncInput): Promise<RunReport> {
  const { replica, epoch } = input;
  const report = newReport();
  let begun: BegunSync | undefined;
  const counts = { requests: 0, waitMs: 0 };
  const onFirstRequest = () => {
    report.startedAt = new Date();
  };
  try {
    begun = await beginMarked(input);
    const check = await syncTables(input, { ...input.reader, counts, onFirstRequest }, report, begun);
    const issuesState = await completeMarked(input, check);
    report.completedAt = new Date();
    if (issuesState !== input.cache.issuesState) {
      await reportIssues(replica, report);
      input.cache.issuesState = issuesState;
    }
  } catch (caught) {
    const error = asBasetideError(caught);
    if (!report.completedAt && begun && error.code !== "replica_unavailable") await endSync(replica, epoch);
    if (nextStep[error.code] === "stop") throw error;
    if (nextStep[error.code] === "check_schema") input.cache.schemaSeenAt = Number.NEGATIVE_INFINITY;
    report.error = error;
    failSpan(error.code);
  }
  report.requests = counts.requests;
  report.waitMs = Math.round(counts.waitMs);
  return report;
}

/**
 * Processes the tables repeatedly until each has been read and none needs a rebuild.
 *
 * @returns a function that requests the records which other processes have written to tables meanwhile
 */
async function syncTables(
  input: SyncInput,
  reader: Reader,
  report: RunReport,
  { catalog, ...begun }: BegunSync,
): Promise<(tableIds: string[]) => Promise<void>> {
  const { cache } = input;
  const schemaTracker = await SchemaTracker.open({ ...input, reader, catalog });
  const notified = await input.opening;
  const { skipped, asked } = leftOut(input, reader, schemaTracker.tables);
  const forced = new Set(input.isForced ? schemaTracker.catalog.keys() : []);
  if (input.isForced) for (const refusal of cache.refusals.values()) refusal.until = 0;
  const specs = schemaTracker.tables.flatMap(({ id }) =>
    skipped.has(id) ? [] : (specToBuild(schemaTracker, id, forced) ?? []),
  );
  if (specs.length > 0) report.kind = buildKind(input);
  const rebuild = new Map(specs.map((spec) => [spec.tableId, spec]));
  const known = knownSizes(input);
  const board = new ProgressBoard(report, rebuild, known, input.onProgress, reader.counts);
  // An earlier attempt at the first sync has completed these tables: they can be queried.
  if (report.kind === "first") board.addDone([...schemaTracker.catalog.values()].map(({ spec }) => spec));
  const order = specs.length > 1 ? new TableOrder(reader, known) : null;
  /** Number of records seen, by table id. */
  const done = new Map<string, number>();
  const isDone = (tableId: string) => done.has(tableId);
  const left = new Map<string, BasetideError>();
  const onEstimate = (tableId: string, size: TableSize) => {
    board.estimated(tableId, size);
    order?.estimated(tableId, size);
  };
  using sizes = sizeEstimates({ ...input, isDone, onEstimate }, reader, known);
  using keeping = keepUp({ ...input, notified }, reader, schemaTracker, isDone);
  const onBuild = keeping.begin;
  const shared: SharedByTables = { ...begun, input, schemaTracker, forced, board, report, sizes, onBuild };
  for (let round = 1; ; round++) {
    const open = schemaTracker.tables.filter(
      ({ id }) => !skipped.has(id) && !left.has(id) && (!done.has(id) || schemaTracker.table(id).rebuild),
    );
    if (open.length === 0) {
      if (input.restsAfter) await withTimeout(patienceMs(cache, skipped), () => {}, asked);
      const readable = [...skipped].filter((id) => cache.failing.isReadable(id));
      if (readable.length === 0 && done.size > 0 && !input.base.sync && cache.schema?.isRecalled) {
        keeping.begin();
        await readSchema(input, reader, schemaTracker);
        keeping[Symbol.dispose]();
        return await syncTables(input, reader, report, { ...begun, catalog: undefined });
      }
      if (readable.length === 0) break;
      for (const id of readable) skipped.delete(id);
      continue;
    }
    if (round > MANY_TRIES) throw changesTooFast(open);
    const { outcomes, failed, error } = await allTables(open, input, reader, done, (table, own) =>
      syncTable(shared, order?.readerFor(table.id, own) ?? own, table.id),
    );
    for (const [id, error] of failed) left.set(id, error);
    for (const outcome of outcomes.values()) addTo(report, outcome);
    if (error) {
      if (done.size > 0) await leaveFailing(input, schemaTracker, left, begun.unwritten);
      throw error;
    }
  }
  if (done.size === 0 && left.size > 0) throw noneRead(schemaTracker, left);
  await leaveFailing(input, schemaTracker, left, begun.unwritten);
  const shown = schemaTracker.tables.filter(({ id }) => cache.tables.has(id) || done.has(id));
  report.tables = tableCounts(shown, cache, input.base);
  report.seen = [...done.values()].reduce((sum, records) => sum + records, 0);
  const failing = cache.failing.list();
  if (failing.length > 0) report.failing = failing;
  // Objects of the customer's refuse changes of tables, whose rows were read.
  if (schemaTracker.refusal) throw schemaTracker.refusal;
  const { readVersions } = begun;
  const sweep = { ...input, schemaTracker, reader: { ...reader, readVersions }, onProgress: () => {} };
  return async (tableIds) => {
    for (const id of tableIds) {
      const { source, live } = schemaTracker.table(id);
      if (!source || !live || cache.failing.has(id)) continue;
      const isRead = await cache.failing.attempt(source, async () =>
        addTo(report, await sweepWritten(sweep, source, tableCache(cache, live))),
      );
      if (!isRead) report.failing = cache.failing.list();
    }
  };
}

/**
 * Waits until the schema can be read: a first sync that another worker has begun does not know yet which tables it lacks.
 *
 * @throws BasetideError `sync_stopped` after a while, so that the lease can be renewed; the next sync waits again
 */
async function readSchema(
  { cache }: SyncInput,
  { stop }: Reader,
  schemaTracker: SchemaTracker,
): Promise<void> {
  const until = performance.now() + TURN_MS;
  while (cache.schema?.isRecalled) {
    if (performance.now() > until) throw new BasetideError("sync_stopped");
    await wait(TICK_MS, stop);
    await schemaTracker.look();
  }
}

function addTo(report: RunReport, { inserted, updated, deleted }: TableOutcome): void {
  report.inserted += inserted;
  report.updated += updated;
  report.deleted += deleted;
}

function changesTooFast(tables: SourceTable[]): BasetideError {
  const names = tables.map(({ name }) => name).join(", ");
  return new BasetideError(
    "source_schema_changed",
    `The schema changes faster than it can be applied: ${names}.`,
  );
}

/**
 * Returns the ids of the tables that the sync does not read, because they fail. They are asked for in the background:
 * `asked` resolves when that is over.
 */
function leftOut({ cache: { failing }, isForced }: SyncInput, reader: Reader, tables: SourceTable[]) {
  failing.keepOnly(tables);
  // If no table can be read, or on request, the sync finds out whether that is still so.
  if (isForced || tables.every(({ id }) => !failing.isReadable(id)))
    return { skipped: new Set<string>(), asked: Promise.resolve() };
  const asked = askFailing(failing, reader, tables);
  return { skipped: new Set(tables.map(({ id }) => id).filter((id) => !failing.isReadable(id))), asked };
}

/** Returns how long a sync waits for the answers of these tables, ms. */
function patienceMs({ failing }: BaseCache, tableIds: ReadonlySet<string>): number {
  return Math.max(0, ...[...tableIds].map((id) => failing.patienceMs(id)));
}

/** Returns the error of a sync that could not read any table. */
function noneRead(schemaTracker: SchemaTracker, left: ReadonlyMap<string, BasetideError>): BasetideError {
  const [[id, error]] = [...left].toSorted(([, a], [, b]) => gravity(b) - gravity(a)) as [
    [string, BasetideError],
  ];
  const name = schemaTracker.table(id).source?.name;
  // Others' objects and rights keep all tables from being written: they are tried again.
  if (isBasetideError(error, "destination_invalid"))
    return new BasetideError("replica_refused", error.message, { cause: error, details: error.details });
  // No table can be read: the remedy is the base's.
  if (isRefusedRead(error) || left.size > 1 || name === undefined) return error;
  return ofTable(name, error);
}

/**
 * Records the tables that could not be read. What other processes have written to them is remembered for the sweep that
 * reads them again: the recent-writes log is trimmed.
 */
async function leaveFailing(
  { cache, replica, reader }: SyncInput,
  schemaTracker: SchemaTracker,
  left: ReadonlyMap<string, BasetideError>,
  unwritten: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [tableId, error] of left) {
    const { source } = schemaTracker.table(tableId);
    if (!source) continue;
    // Why it failed before is still the reason.
    if (cache.failing.has(tableId) && cache.failing.probing.has(tableId)) continue;
    if (nextStep[error.code] === "check_schema") cache.schemaSeenAt = Number.NEGATIVE_INFINITY;
    if (!cache.failing.has(tableId))
      reader.log.warn({ error, tableId }, "table cannot be read; the other tables are synced");
    cache.failing.failed(source, error);
  }
  for (const id of cache.failing.ids) {
    const { live } = schemaTracker.table(id);
    if (!live) continue;
    const table = tableCache(cache, live);
    // One that is being written is read later: the log keeps its entries for longer than that takes.
    if (unwritten.get(id) === table.loggedUpTo || cache.failing.probing.has(id)) continue;
    try {
      await expectLogged(replica, table);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (!isOfTable(error)) throw error;
      forgetRows(cache, [id]);
    }
  }
}

/** Returns how large the tables were when they were last read, or are estimated to be, by id. */
function knownSizes({ base, sizes = {} }: SyncInput): Map<string, TableSize> {
  return new Map([...Object.entries(sizes), ...countedSizes(base.tables)]);
}

interface SharedByTables extends Pick<BegunSync, "unwritten" | "readVersions"> {
  input: SyncInput;
  schemaTracker: SchemaTracker;
  /** Tables that must be rebuilt although nothing requires it. */
  forced: Set<string>;
  board: ProgressBoard;
  report: RunReport;
  sizes: ReturnType<typeof sizeEstimates>;
  onBuild: () => void;
}

/**
 * Brings one table up to date, even if its schema changes meanwhile. @returns null when the source no longer has it
 */
async function syncTable(
  { input, schemaTracker, forced, board, report, sizes, onBuild, unwritten, readVersions }: SharedByTables,
  reader: Reader,
  tableId: string,
): Promise<TableOutcome | null> {
  const { replica, epoch, cache, onShapeChange } = input;
  const onProgress = (records: number) => {
    board.records(tableId, records);
    sizes.estimate();
  };
  const build = { replica, reader, epoch, schemaTracker, cache, onShapeChange, onProgress };
  const sweep = { ...build, reader: { ...reader, readVersions }, unwritten };
  for (let attempt = 1; ; attempt++) {
    const begunAt = performance.now();
    const shape = schemaTracker.table(tableId);
    if (!shape.source) return null;
    const spec = specToBuild(schemaTracker, tableId, forced);
    try {
      if (!spec) return await sweepTable(sweep, shape.source, tableCache(cache, shape.live!));
      report.kind = buildKind(input);
      onBuild();
      board.begin(spec);
      const wasRead = cache.builds.has(tableId);
      const { source } = shape;
      const outcome = await rebuildTable(
        { ...build, onSecondPage: (ids) => sizes.onSecondPage(source, ids) },
        source,
        spec,
      );
      forced.delete(tableId);
      board.done(tableId);
      if (!wasRead) return outcome;
      // I3. Records that an earlier sync read are older than this sync. What was requested before the change loses to it.
      readVersions.renew();
      const { live } = schemaTracker.table(tableId);
      const swept = await sweepTable(sweep, shape.source, tableCache(cache, live!));
      return {
        ...swept,
        inserted: swept.inserted + outcome.inserted,
        updated: swept.updated + outcome.updated,
        deleted: swept.deleted + outcome.deleted,
      };
    } catch (caught) {
      const error = asBasetideError(caught);
      const { live } = schemaTracker.table(tableId);
      if (spec) cache.problems.buildFailed(tableId, error);
      if (spec && live && onlyAddsColumns(live.spec, spec) && isBasetideError(error, "replica_busy")) {
        await sweepTable({ ...sweep, isWithoutNew: true }, shape.source, tableCache(cache, live));
        throw waiting(live.spec, spec, error);
      }
      if (spec && live && !live.spec.isDamaged && isRefusedChange(error)) {
        schemaTracker.postpone(tableId, error, performance.now() - begunAt);
        forced.delete(tableId);
        continue;
      }
      const isLast = attempt === TRIES;
      if (isLast || !mayMeanOldSchema(error) || !(await isOvertaken(schemaTracker, tableId, shape)))
        throw error;
    }
  }
}

/** Adds to the error which new columns cannot be shown while queries hold the table. */
function waiting(live: TableSpec, wanted: TableSpec, cause: BasetideError): BasetideError {
  const known = new Set(live.columns.map(({ fieldId }) => fieldId));
  const names = wanted.columns.filter(({ fieldId }) => !known.has(fieldId)).map(({ name }) => name);
  const text = `New columns of ${live.name} (${names.join(", ")}) wait for transactions that lock the table. Its other columns stay up to date. ${cause.message}`;
  return new BasetideError(cause.code, text, { cause, details: cause.details });
}

/** Returns the spec that the table must be built with; undefined if it need not be built. */
function specToBuild(
  schemaTracker: SchemaTracker,
  tableId: string,
  forced: ReadonlySet<string>,
): TableSpec | undefined {
  const { live, rebuild } = schemaTracker.table(tableId);
  return rebuild ?? (forced.has(tableId) ? live?.spec : undefined);
}

function buildKind({ base }: SyncInput): RunReport["kind"] {
  return base.sync ? "rebuild" : "first";
}

/**
 * Returns whether the table has a different schema than the one that failed. If no change is known, asks the source.
 */
export async function isOvertaken(
  schemaTracker: SchemaTracker,
  tableId: string,
  failed: TableShape,
): Promise<boolean> {
  if (Bun.deepEquals(failed, schemaTracker.table(tableId))) {
    try {
      await schemaTracker.refresh();
    } catch (caught) {
      if (!isOfTable(asBasetideError(caught))) throw caught;
    }
  }
  return !Bun.deepEquals(failed, schemaTracker.table(tableId));
}

/** What `allTables` found, by table id. */
interface Outcomes {
  outcomes: Map<string, TableOutcome>;
  failed: Map<string, BasetideError>;
  /** The most serious of the failures that are not a table's own. */
  error: BasetideError | undefined;
}

/**
 * Processes all tables concurrently, so that the quota is the limit and not the latency. A table that fails does not
 * keep the others from being brought up to date, unless the error concerns the whole base; nor does one that the source
 * no longer answers for, or whose rows take long to write, once all others have been read. Such a write ends in the
 * background, and the table is not tried again before.
 *
 * @param done the number of records of each table that was read
 * @throws BasetideError `sync_stopped`, when all tables have ended
 */
async function allTables(
  tables: SourceTable[],
  { cache: { failing } }: SyncInput,
  reader: Reader,
  done: Map<string, number>,
  work: (table: SourceTable, reader: Reader) => Promise<TableOutcome | null>,
): Promise<Outcomes> {
  using over = linkedAbort(reader.stop);
  using kill = linkedAbort(reader.kill);
  const open = new Set<ReturnType<typeof watchAnswers>>();
  const found: Outcomes = { outcomes: new Map(), failed: new Map(), error: undefined };
  const errors: BasetideError[] = [];
  const left = Promise.withResolvers<void>();
  const leaveLate = () => {
    if (done.size === 0 || [...open].some(({ silence, isWritingLong }) => !silence && !isWritingLong)) return;
    over.abort();
    kill.abort();
    left.resolve();
  };
  await Promise.all(
    tables.map(async (table) => {
      const own = { ...reader, stop: over.signal, kill: kill.signal };
      const patienceMs = failing.has(table.id) ? SHORTEST_MS : MOST_PATIENCE_MS;
      const writing = { patienceMs, onLong: leaveLate };
      const watched = watchAnswers(own, failing.patienceMs(table.id), leaveLate, writing);
      open.add(watched);
      let isLeft = false;
      const run = async () => {
        try {
          const outcome = await work(table, watched.reader);
          failing.read(table.id);
          if (!outcome || isLeft) return;
          found.outcomes.set(table.id, outcome);
          done.set(table.id, outcome.seen);
        } catch (caught) {
          const error = (kill.signal.aborted && watched.silence) || asBasetideError(caught);
          reader.log.debug({ error, tableId: table.id }, "syncing a table failed");
          if (isLeft) {
            if (isOfTable(error)) failing.failed(table, error);
          } else if (isOfTable(error)) found.failed.set(table.id, error);
          else errors.push(error);
          if (!isOfTable(error) && isWholeBases(error)) over.abort();
        } finally {
          if (isLeft) failing.probing.delete(table.id);
          open.delete(watched);
          watched[Symbol.dispose]();
          leaveLate();
        }
      };
      const leave = left.promise.then(() => {
        if (!watched.isWritingLong) return running;
        isLeft = true;
        failing.probing.add(table.id);
        found.failed.set(table.id, writesLong());
      });
      const running = run();
      await Promise.race([running, leave]);
    }),
  );
  if (reader.stop.aborted) throw new BasetideError("sync_stopped");
  // Tables that were stopped because of a more serious failure report `sync_stopped`.
  [found.error] = errors
    .filter((error) => error.code !== "sync_stopped")
    .toSorted((a, b) => gravity(b) - gravity(a));
  return found;
}

function writesLong(): BasetideError {
  const text = "Writing its rows takes long: a trigger of yours may not end, or the server is slow.";
  return new BasetideError("replica_busy", text, { details: { isOfRows: true } });
}

/**
 * Records that a table could not be read, in the modes in which each table is read by itself.
 *
 * @param shape the table's as it was read
 * @returns the error; undefined if the table has another schema by now: it can be read again at once
 * @throws BasetideError if the error concerns the whole base
 */
export async function tableFailed(
  { schemaTracker, cache, log }: { schemaTracker: SchemaTracker; cache: BaseCache; log: Reader["log"] },
  tableId: string,
  shape: TableShape,
  caught: unknown,
): Promise<BasetideError | undefined> {
  const error = asBasetideError(caught);
  // The source also answers "forbidden" for a table that is gone: only a schema check can tell.
  if (mayMeanOldSchema(error) && (await isOvertaken(schemaTracker, tableId, shape))) return undefined;
  if (isBasetideError(error, "source_schema_changed") && schemaTracker.table(tableId).rebuild)
    return undefined;
  const isOfBase = isRefusedRead(error) && cache.schemaError?.code === error.code;
  if (isOfBase || !isOfTable(error)) {
    if (isWholeBases(error)) throw error;
    return error;
  }
  // The owner may have changed.
  if (isBasetideError(error, "destination_invalid")) await schemaTracker.reload();
  const isNew = !cache.failing.has(tableId);
  log[isNew ? "warn" : "debug"]({ error, tableId }, "table cannot be read; the other tables are synced");
  cache.failing.failed({ id: tableId, name: shape.source?.name ?? tableId }, error);
  return error;
}

/** Returns whether the error may mean that the table or a field no longer exists. */
export function mayMeanOldSchema(error: BasetideError): boolean {
  return isRefusedRead(error) || nextStep[error.code] === "check_schema";
}
