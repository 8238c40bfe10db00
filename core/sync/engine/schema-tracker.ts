/**
 * Keeps the replica's schema in line with the source's, as far as that is possible without reading records: runs
 * schema checks when they are due, renames and drops columns and tables, and determines which tables must be rebuilt.
 *
 * A sync has one tracker, which all its tables share: a result of one table's check applies to all.
 */

import { wait, withTimeout } from "../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../errors";
import {
  type AttachmentUrls,
  asRefusal,
  type Catalog,
  type CatalogTable,
  cellsToForget,
  changeShape,
  dropColumns,
  foreignNames,
  forgetCells,
  type NameSettings,
  onlyDropsColumns,
  planSchema,
  type Replica,
  readCatalog,
  requireOwn,
  retiredTables,
  type SchemaPlan,
  type ShapeChange,
  settleDependents,
  shapeChanges,
  type TableSpec,
  type TypeSettings,
} from "../../replica";
import type { SourceConnection, SourceSchema, SourceTable } from "../../source";
import type { SchemaError, SyncedBase } from "../host";
import { itemPauseMs, MANY_TRIES, MOST_PATIENCE_MS, OBSTACLE_MS, TICK_MS, TRIES } from "../pacing";
import { type BaseCache, forgetRows, isOfTable, patienceAfter, unpackCache } from "../state";
import { type Misplaced, type MovedNames, misplacedWrites, movedNames } from "./moved-names";
import { metered, type Reader } from "./reader";
import { recalledSchema } from "./recalled-schema";
import { knownTables, reportDefinitions } from "./unreadable";
import { withVanished } from "./vanished";

/** A refused rebuild waits this many times as long as the attempt took, which may have read a whole table. */
const REFUSED_PAUSES = 10;

/**
 * Catalogs that need no change, each with the schema and the settings for which that was found. Every sync of an
 * unchanged base would plan the same again.
 */
const settled = new WeakMap<Catalog, { schema: SourceSchema; settings: TypeSettings }>();

export interface SchemaTrackerOptions {
  base: Pick<SyncedBase, "settings">;
  replica: Replica;
  reader: Reader;
  epoch: number;
  cache: BaseCache;
  /** How attachments are linked by our URLs; undefined: by the source's. `cache` contains the signer. */
  attachmentUrls?: AttachmentUrls | undefined;
  /** The replica's catalog, if it is known; used unless a schema check is due. */
  catalog?: Catalog | undefined;
  schemaPollMs: number;
  /** Called after every schema change that was carried out. */
  onShapeChange?: ((changes: ShapeChange[]) => void) | undefined;
  /** Called with the source's schema when it differs from the one before. */
  onSchema?: ((schema: SourceSchema) => void) | undefined;
  /** Called when the schema cannot be read, and with null when it can be again. */
  onSchemaError?: ((error: SchemaError | null) => void) | undefined;
  /** Called with records that were written under names that have moved: they must be read again. */
  onMisplaced?: ((records: Misplaced[]) => Promise<void>) | undefined;
  /** Called when the schema check that was requested at this time has completed. */
  onRequestedSchemaCheck?: ((requestedAt: Date) => void) | undefined;
}

/** A table in the source, in the replica, and as it must be rebuilt, if at all. */
export interface TableShape {
  /** Undefined: the source no longer has it. */
  source: SourceTable | undefined;
  live: CatalogTable | undefined;
  rebuild: TableSpec | undefined;
  /** The source has it, but it is not copied: its changes may still reach computed cells of other tables. */
  isLeftOut?: boolean | undefined;
}

export class SchemaTracker {
  /** Columns with cells that they cannot hold, as this sync has found for good; see `checkSchema`. */
  readonly oddColumns = new Set<string>();
  readonly #options: SchemaTrackerOptions;
  readonly #settings: TypeSettings & NameSettings;
  #schema: SourceSchema = { tables: [] };
  #catalog: Catalog = new Map();
  /** Number of catalog reads that have begun, and the number of the read that the current catalog comes from. */
  #readsBegun = 0;
  #catalogRead = 0;
  #plan: SchemaPlan = { inPlace: [], rebuild: [], drop: [] };
  #moved: MovedNames = new Map();
  #refusal: BasetideError | undefined;
  #refusedUntil = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  /** Of the latest answer that the replica was brought in line with, see `BaseCache.schemaSeenAt`. */
  #appliedAt = Number.NEGATIVE_INFINITY;
  /** The last failure of the request that is running, which is sent again. */
  #failure: BasetideError | undefined;
  #retryAt = Number.POSITIVE_INFINITY;
  /** How many tables are being read by `reading`. */
  #readings = 0;

  private constructor(options: SchemaTrackerOptions) {
    this.#options = options;
    this.#settings = { ...options.base.settings, attachmentUrls: options.attachmentUrls };
  }

  /**
   * Opens a tracker with the replica's current schema. Asks the source at most once per `schemaPollMs` (0: once per
   * sync), unless a check was requested. Changed settings apply at once.
   */
  static async open(options: SchemaTrackerOptions): Promise<SchemaTracker> {
    const schemaTracker = new SchemaTracker(options);
    let { catalog } = options;
    if (schemaTracker.#isDue()) {
      // An answer is compared with what readers can see.
      await schemaTracker.#runOrJoin(() => schemaTracker.#readCatalog(catalog));
      catalog = schemaTracker.#catalog;
      schemaTracker.#recall();
      if (options.cache.schema) await schemaTracker.#look();
      else await schemaTracker.#ask();
    }
    await schemaTracker.#runOrJoin(() => schemaTracker.#apply(TRIES, catalog));
    return schemaTracker;
  }

  /** Lets a worker that does not know the schema go on with that of the replica until the source answers. */
  #recall(): void {
    const { cache } = this.#options;
    unpackCache(cache);
    if (cache.schema || this.#catalog.size === 0) return;
    cache.schema = recalledSchema(this.#catalog, cache.selection);
  }

  /** The source's tables. */
  get tables(): SourceTable[] {
    return this.#schema.tables;
  }

  /** The replica's catalog. */
  get catalog(): Catalog {
    return this.#catalog;
  }

  /** True while nothing is left to do until the next schema check. */
  get isSettled(): boolean {
    const { schemaCheckRequestedAt } = this.#options.cache;
    const isBusy = this.#running !== undefined || this.#retryAt < Number.POSITIVE_INFINITY;
    return !isBusy && this.#plan.rebuild.length === 0 && !schemaCheckRequestedAt;
  }

  get rebuild(): TableSpec[] {
    return this.#plan.rebuild;
  }

  /**
   * Why a change is not carried out: an object of the customer's refuses it. Rows are synced without it. A table that needs
   * attention is listed by itself.
   */
  get refusal(): BasetideError | undefined {
    const refusals = [...this.#options.cache.refusals.values()];
    return this.#refusal ?? refusals.find(({ error }) => isBasetideError(error, "replica_refused"))?.error;
  }

  /**
   * Lets a live table be synced as it is for a while, because an object of the customer's refuses its rebuild, or because it
   * cannot be changed. It stays refused until it has been rebuilt, or need not be any longer.
   *
   * @param tookMs how long the attempt took
   */
  postpone(tableId: string, error: BasetideError, tookMs: number): void {
    const { refusals, failing, problems } = this.#options.cache;
    const pauseMs = Math.max(OBSTACLE_MS, REFUSED_PAUSES * tookMs);
    refusals.set(tableId, { error, until: performance.now() + pauseMs });
    const { source } = this.table(tableId);
    if (source && error.code === "needs_attention") failing.unchanged(source, error);
    problems.buildFailed(tableId, error, pauseMs);
  }

  /** Returns the time until the table may be rebuilt, ms; 0 or less: now. */
  postponedMs(tableId: string): number {
    return (this.#options.cache.refusals.get(tableId)?.until ?? 0) - performance.now();
  }

  /**
   * To be called before a live table is read or written. Looks again whether it belongs to another role.
   *
   * @throws BasetideError `destination_invalid` if it does
   */
  async ownTable(id: string): Promise<void> {
    if (this.#catalog.get(id)?.taken !== undefined) await this.reload();
    const live = this.#catalog.get(id);
    if (live) requireOwn(live);
  }

  table(id: string): TableShape {
    const { tables, whole } = this.#schema;
    const source = tables.find((table) => table.id === id);
    const live = this.#catalog.get(id);
    const isPostponed = live && !live.spec.isDamaged && this.postponedMs(id) > 0;
    return {
      source,
      live,
      rebuild: isPostponed ? undefined : this.#plan.rebuild.find((spec) => spec.tableId === id),
      ...(!source && whole?.some((table) => table.id === id) && { isLeftOut: true }),
    };
  }

  /**
   * To be called before each page: runs a schema check that is due or requested, and retries changes that queries
   * blocked. Undefined if there is nothing to wait for.
   */
  refreshIfDue(): Promise<void> | undefined {
    const { cache, schemaPollMs } = this.#options;
    const isWanted = cache.schemaCheckRequestedAt || performance.now() >= cache.schemaLookAt;
    if ((isWanted || schemaPollMs > 0) && this.#isDue()) return this.look();
    // An answer has come after nothing waited for it any longer, or to another tracker of the base.
    if (this.#appliedAt < cache.schemaSeenAt) return this.#applyAnswer();
    if (performance.now() >= this.#retryAt) return this.#runOrJoin(() => this.#applySchema(1));
    return undefined;
  }

  /**
   * Runs a schema check, unless one has just failed. Does not wait long for the answer: rows of known tables are written
   * meanwhile. A failure is recorded in the cache, and thrown only if it concerns the whole base.
   */
  async look(): Promise<void> {
    if (performance.now() < this.#options.cache.schemaRetryAt) return;
    if (await this.#look()) await this.#applyAnswer();
  }

  #look(): Promise<boolean> {
    // An answer that is usually late, if there is one at all, is waited for by none.
    return this.#askPatiently(this.#options.cache.schemaError ? 0 : this.#patienceMs);
  }

  /** Ensures that the current schema was requested after `since` (performance.now()), by any caller. */
  async refresh(since = performance.now()): Promise<void> {
    const { cache } = this.#options;
    while (cache.schemaSeenAt < since) {
      if (await this.#askPatiently(this.#patienceMs)) continue;
      const { code, message } = cache.schemaError!;
      throw new BasetideError(code, message);
    }
    await this.#applyAnswer();
  }

  /** Returns the result. Meanwhile, a table is being read for which the schema will have to be current, too. */
  async reading<Result>(pages: Promise<Result>): Promise<Result> {
    this.#readings++;
    try {
      return await pages;
    } finally {
      this.#readings--;
    }
  }

  /**
   * As `refresh`. While other tables are read, one request serves those that end within a few seconds: of many tables with
   * a few pages, a request for each would be as much as a quarter of all.
   */
  async refreshTogether(): Promise<void> {
    const { cache, reader } = this.#options;
    const since = performance.now();
    const isDue = () => performance.now() >= cache.schemaSeenAt + MOST_PATIENCE_MS;
    while (this.#readings > 0 && cache.schemaSeenAt < since && !isDue()) await wait(TICK_MS, reader.stop);
    await this.refresh(since);
  }

  /** Brings the replica in line with the latest answer. */
  async #applyAnswer(): Promise<void> {
    const { cache } = this.#options;
    while (this.#appliedAt < cache.schemaSeenAt || this.#schema !== cache.schema) {
      await this.#runOrJoin(() => this.#apply(TRIES, this.#isQuiet ? this.#catalog : undefined));
    }
  }

  /** Reads the replica's catalog again: a read that is already running may return an older one. */
  async reload(): Promise<void> {
    const before = this.#readsBegun;
    while (this.#catalogRead <= before) await this.#runOrJoin(() => this.#applySchema(1));
  }

  #isDue(): boolean {
    const { cache, schemaPollMs, reader } = this.#options;
    const { schema, schemaSeenAt, schemaCheckRequestedAt, schemaLookAt } = cache;
    if (!schema) return true;
    if (cache.schemaAsking || performance.now() < cache.schemaRetryAt) return false;
    if (schemaCheckRequestedAt || performance.now() >= schemaLookAt) return true;
    const agoMs = performance.now() - schemaSeenAt;
    if (agoMs < schemaPollMs / 2) return false;
    // The request waits behind those of the tables, so it is made that much earlier.
    const aheadMs = ((schema.tables.length + 1) / reader.share()) * 1000;
    return agoMs >= schemaPollMs - Math.min(aheadMs, schemaPollMs / 2);
  }

  /** Applies the current schema, and reports what could not be read of it. */
  async #apply(tries: number, known?: Catalog): Promise<void> {
    await this.#applySchema(tries, known);
    await reportDefinitions(this.#options, this.#schema, this.#catalog);
  }

  /** Runs one task at a time; a caller that finds one running waits for it instead. */
  #runOrJoin(work: () => Promise<void>): Promise<void> {
    this.#running ??= this.#run(work).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(work: () => Promise<void>): Promise<void> {
    await work();
    this.#reportTables();
  }

  /** Reports tables that are missing or outdated, unless another tracker has read a later catalog. */
  #reportTables(): void {
    const { cache } = this.#options;
    if (cache.catalog?.catalog !== this.#catalog) return;
    const names = this.tables.filter(({ id }) => !this.#catalog.has(id));
    const outdated = this.#plan.rebuild.filter(({ tableId }) => this.#catalog.has(tableId));
    cache.problems.tables(
      names,
      outdated.map(({ tableId, sourceName }) => ({ id: tableId, name: sourceName })),
    );
  }

  /** Asks the source for the schema; a caller that finds a request running waits for that instead. */
  async #ask(): Promise<void> {
    const { cache, reader } = this.#options;
    cache.schemaAsking ??= this.#askSchema()
      .catch((caught: unknown) => {
        const error = asBasetideError(caught);
        if (isOfSchema(error)) this.#schemaFailed(error);
        throw error;
      })
      .finally(() => {
        cache.schemaAsking = undefined;
      });
    try {
      await cache.schemaAsking;
    } catch (error) {
      // The request belonged to a sync that has ended.
      if (!isBasetideError(error, "sync_stopped") || reader.stop.aborted) throw error;
    }
  }

  get #patienceMs(): number {
    return patienceAfter(this.#options.cache.schemaTookMs);
  }

  /** @returns whether the source has answered in time; if not, the cache has the error */
  async #askPatiently(ms: number): Promise<boolean> {
    const { cache } = this.#options;
    let isLate = false;
    const answered = this.#ask().then(
      () => true,
      (error: unknown) => {
        if (!isLate && !isOfSchema(asBasetideError(error))) throw error;
        return false;
      },
    );
    return await withTimeout(
      ms,
      () => {
        isLate = true;
        const text = `Airtable has not answered for ${Math.round(ms / 1000)} s.`;
        if (!cache.schemaError)
          this.#schemaFailed(this.#failure ?? new BasetideError("source_timeout", text));
        return false;
      },
      answered,
    );
  }

  #schemaFailed({ code, message }: BasetideError): void {
    const { cache, onSchemaError } = this.#options;
    const since = cache.schemaError?.since ?? new Date().toISOString();
    cache.schemaError = { code, message: `The schema of the base cannot be read: ${message}`, since };
    cache.schemaRetryAt = performance.now() + itemPauseMs(++cache.schemaFailures);
    onSchemaError?.(cache.schemaError);
  }

  async #askSchema(): Promise<void> {
    const { cache, reader, onSchema, onSchemaError, onRequestedSchemaCheck } = this.#options;
    const requestedAt = cache.schemaCheckRequestedAt;
    let askedAt = 0;
    const known = knownTables(cache, this.#catalog);
    const getSchema = (source: SourceConnection, signal: AbortSignal) => {
      askedAt = performance.now();
      return source.getSchema(reader.sourceBaseId, signal, { known });
    };
    // While it cannot be read, each attempt is one request.
    const mayTryAgain = () => !cache.schemaError && (reader.mayTryAgain?.() ?? true);
    const onFailure = (error: BasetideError) => {
      this.#failure = error;
    };
    this.#failure = undefined;
    const answer = await metered({ ...reader, mayTryAgain, onFailure }, "schema").send(getSchema);
    cache.schemaTookMs = performance.now() - askedAt;
    const schema = await withVanished({ reader, cache, catalog: this.#catalog }, answer);
    // Cells that depend on others were not looked for meanwhile.
    if (cache.schema?.isRecalled && cache.schemaError) cache.scanStartedAt = Number.NEGATIVE_INFINITY;
    cache.schemaFailures = 0;
    cache.schemaRetryAt = Number.NEGATIVE_INFINITY;
    if (cache.schemaError) {
      cache.schemaError = null;
      onSchemaError?.(null);
    }
    // An equal schema keeps its object, so that results that were computed from it stay valid.
    if (!Bun.deepEquals(schema, cache.schema)) {
      cache.schema = schema;
      onSchema?.(schema);
    }
    cache.schemaSeenAt = askedAt;
    if (!requestedAt) return;
    cache.schemaCheckMadeFor = requestedAt;
    if (cache.schemaCheckRequestedAt === requestedAt) cache.schemaCheckRequestedAt = null;
    onRequestedSchemaCheck?.(requestedAt);
  }

  /**
   * Brings the replica in line with the current schema. After `tries` attempts, changes that queries block are left
   * for later.
   *
   * @param known the current catalog, if it need not be read
   */
  async #applySchema(tries: number, known?: Catalog): Promise<void> {
    const { cache, replica, epoch, reader, onShapeChange } = this.#options;
    for (let attempt = 1; ; attempt++) {
      if (attempt > MANY_TRIES)
        throw new BasetideError("source_schema_changed", "The schema changes faster than it can be applied.");
      const seenAt = cache.schemaSeenAt;
      if (attempt === 1 && known && this.#isSettled(known)) {
        this.#catalog = known;
        this.#appliedAt = seenAt;
        cache.namesSeenAt = Math.max(cache.namesSeenAt, seenAt);
        this.#schema = cache.schema!;
        this.#keepRefusals();
        return;
      }
      await this.#readCatalog(attempt === 1 ? known : undefined);
      await this.#reportMisplaced();
      cache.namesSeenAt = Math.max(cache.namesSeenAt, seenAt);
      this.#appliedAt = seenAt;
      await this.#forgetCells();
      await this.#makePlan();
      const isInPlace = this.#plan.inPlace.length > 0 || this.#plan.drop.length > 0;
      // Renames change the specs, so columns are dropped after them.
      const narrowed = isInPlace ? [] : this.#narrowed();
      this.#schema = cache.schema!;
      this.#retryAt = Number.POSITIVE_INFINITY;
      if (!isInPlace && narrowed.length === 0) {
        this.#refusal = undefined;
        if (this.#plan.rebuild.length === 0 && this.#moved.size === 0) {
          settled.set(this.#catalog, { schema: this.#schema, settings: this.#settings });
        }
        return;
      }
      if (performance.now() < this.#refusedUntil) {
        this.#retryAt = this.#refusedUntil;
        return;
      }
      try {
        if (isInPlace)
          await changeShape(replica, epoch, this.#catalog, this.#plan, (changes) => onShapeChange?.(changes));
        for (const { tableId } of this.#plan.drop) cache.tables.delete(tableId);
        for (const spec of narrowed) {
          const live = this.#catalog.get(spec.tableId)!;
          await dropColumns(replica, epoch, live, spec);
          onShapeChange?.(shapeChanges(live.spec, spec));
        }
        await settleDependents(replica);
        this.#refusal = undefined;
      } catch (error) {
        const refusal = asRefusal(error);
        if (refusal) {
          this.#refusal = refusal;
          this.#refusedUntil = performance.now() + OBSTACLE_MS;
          this.#retryAt = this.#refusedUntil;
          await this.#readCatalog();
          return;
        }
        // A table went live since the catalog was read, or a name was taken: a new plan may succeed.
        const isStale = isBasetideError(error, "shape_changed");
        if (!isStale && !isBasetideError(error, "replica_busy")) throw error;
        this.#retryAt = performance.now() + TICK_MS * (0.5 + Math.random());
        if (attempt >= tries) {
          await this.#readCatalog();
          return;
        }
        await wait(TICK_MS * (0.5 + Math.random()), reader.stop);
      }
    }
  }

  /**
   * Returns whether nothing is left to do as far as the tracker knows. The catalog is still the one that was read: only
   * the lease that holds the base changes it, and reads it again then.
   */
  get #isQuiet(): boolean {
    const { inPlace, rebuild, drop } = this.#plan;
    const isPlanned =
      inPlace.length + rebuild.length + drop.length > 0 || this.#retryAt < Number.POSITIVE_INFINITY;
    const { cache } = this.#options;
    const isOwed = this.#moved.size > 0 || cache.toForget.length > 0;
    return !isPlanned && !isOwed && cache.catalog?.catalog === this.#catalog;
  }

  /** For a tracker that is new or quiet: whether this schema was found to ask for nothing of this catalog. */
  #isSettled(catalog: Catalog): boolean {
    const { cache } = this.#options;
    const found = settled.get(catalog);
    return found?.schema === cache.schema && Bun.deepEquals(found?.settings, this.#settings);
  }

  /** Returns tables of which only columns must be dropped: they need not be read again. */
  #narrowed(): TableSpec[] {
    return this.#plan.rebuild.filter((spec) => {
      const live = this.#catalog.get(spec.tableId);
      return live && onlyDropsColumns(live.spec, spec);
    });
  }

  async #readCatalog(known?: Catalog): Promise<void> {
    const { cache, replica } = this.#options;
    const number = ++this.#readsBegun;
    if (known) this.#catalog = known;
    else {
      const read = await readCatalog(replica, cache.catalog?.catalog);
      // Another role may have changed their rows.
      if (cache.catalog) forgetRows(cache, returned(cache.catalog.catalog, read.catalog));
      for (const [id, { spec, taken }] of read.catalog) {
        if (taken === undefined || cache.failing.has(id)) continue;
        cache.failing.failed({ id, name: spec.sourceName }, new BasetideError("destination_invalid", taken));
      }
      cache.catalog = read;
      this.#catalog = read.catalog;
    }
    this.#catalogRead = number;
  }

  /**
   * Reports misplaced writes before the catalog adopts moved names, in case this process ends in between; and
   * afterwards, because writes were shown under the old names until then.
   */
  async #reportMisplaced(): Promise<void> {
    const { cache, replica, reader, onMisplaced } = this.#options;
    const moved = movedNames(this.#catalog, cache.schema!);
    if (!onMisplaced || Bun.deepEquals(moved, this.#moved)) return;
    const records = await misplacedWrites(replica, [this.#moved, moved]);
    if (records.length > 0) {
      reader.log.info(
        { records: records.length },
        "names of tables or fields moved; reading the affected records again",
      );
      await onMisplaced(records);
    }
    this.#moved = moved;
  }

  /** Once when they are first seen, and once more when the tables have none: writes were recorded until then. */
  async #forgetCells(): Promise<void> {
    const { cache, replica, epoch } = this.#options;
    const now = cellsToForget(this.#catalog, cache.schema!);
    if (!Bun.deepEquals(cache.toForget, now))
      for (const cells of [...cache.toForget, ...now]) await forgetCells(replica, epoch, cells);
    cache.toForget = now;
  }

  async #makePlan(): Promise<void> {
    const { cache, replica } = this.#options;
    const settings = this.#settings;
    const plan = planSchema(this.#catalog, cache.schema!, settings);
    const givesNames = plan.rebuild.length > 0 || plan.inPlace.length > 0;
    this.#plan = givesNames
      ? planSchema(
          this.#catalog,
          cache.schema!,
          settings,
          await foreignNames(
            replica,
            cache.schema!.tables.map(({ id }) => id),
          ),
          settings.pinnedNames ? await retiredTables(replica) : undefined,
        )
      : plan;
    this.#keepRefusals(this.#plan.rebuild);
  }

  /** Only tables that must be rebuilt stay refused. */
  #keepRefusals(planned: TableSpec[] = []): void {
    const { refusals, failing } = this.#options.cache;
    const ids = new Set(planned.map(({ tableId }) => tableId));
    for (const id of refusals.keys()) if (!ids.has(id)) refusals.delete(id);
    failing.keepUnchanged(ids);
  }
}

/** Returns the ids of tables that belonged to another role, and do so no longer. */
function returned(before: Catalog, now: Catalog): string[] {
  const isTaken = (catalog: Catalog, id: string) => catalog.get(id)?.taken !== undefined;
  return [...now.keys()].filter((id) => isTaken(before, id) && !isTaken(now, id));
}

/** Returns whether a request for the schema failed in a way that does not keep records from being read. */
function isOfSchema(error: BasetideError): boolean {
  return error.code.startsWith("source_") && isOfTable(error);
}
