/**
 * Keeps the replica's shape in line with the source's schema, as far as that goes without reading records: looks at
 * the schema when it is time, renames and drops what changed, and says which tables are to be rebuilt.
 *
 * A sync has one of these, which all its tables share: what one of them finds out holds for all.
 */

import { wait } from "../../async";
import { isBasetideError } from "../../errors";
import {
  type Catalog,
  type CatalogTable,
  changeShape,
  dropColumns,
  foreignNames,
  loadCatalog,
  onlyDropsColumns,
  planSchema,
  type Replica,
  type SchemaPlan,
  type ShapeChange,
  settleDependents,
  shapeChanges,
  type TableSpec,
  type TypeSettings,
} from "../../replica";
import type { SourceConnection, SourceSchema, SourceTable } from "../../source";
import type { BaseCache } from "../state";
import { isSameMove, type Misplaced, type MovedNames, misplacedWrites, movedNames } from "./moved-names";
import { ask, type Reader } from "./reader";

/** Tries at once to change tables that queries hold, and the pause between them; then syncing goes on meanwhile. */
const BUSY_TRIES = 4;
const BUSY_PAUSE_MS = 250;

export interface SchemaTrackerOptions {
  replica: Replica;
  reader: Reader;
  epoch: number;
  cache: BaseCache;
  settings: TypeSettings;
  schemaPollMs: number;
  signal: AbortSignal;
  /** Told of every change of shape that was carried out. */
  onShapeChange?: ((changes: ShapeChange[]) => void) | undefined;
  /** Told of records that were written by names that have changed hands: they have to be read again. */
  onMisplaced?: ((records: Misplaced[]) => Promise<void>) | undefined;
  /** Told when the look that somebody requested then has been made. */
  onRequestedSchemaCheck?: ((requestedAt: Date) => void) | undefined;
}

/** A table as the source has it, as the replica has it, and as it is to be rebuilt, if it is. */
export interface TableShape {
  /** Undefined: the source has it no more. */
  source: SourceTable | undefined;
  live: CatalogTable | undefined;
  rebuild: TableSpec | undefined;
}

export class SchemaTracker {
  readonly #options: SchemaTrackerOptions;
  /** Tables that a second look missed, too. */
  readonly #confirmedDrops = new Set<string>();
  /** Tables without some of their columns, as two looks wanted them; and those that had to be read anew for it. */
  #confirmedNarrow: TableSpec[] = [];
  readonly #notNarrowed = new Set<string>();
  #schema: SourceSchema = { tables: [] };
  #catalog: Catalog = new Map();
  /** Reads of the catalog that have begun, and the number of the one that is at hand. */
  #readsBegun = 0;
  #catalogRead = 0;
  #plan: SchemaPlan = { inPlace: [], rebuild: [], drop: [] };
  readonly #suspected = new Set<string>();
  #moved: MovedNames = new Map();
  #turn: Promise<void> | undefined;
  #retryAt = Number.POSITIVE_INFINITY;

  private constructor(options: SchemaTrackerOptions) {
    this.#options = options;
  }

  /**
   * The shape that the replica has now. Asks the source at most once per `schemaPollMs` (0: once per sync), unless
   * somebody requested a look; settings that changed are seen at once.
   */
  static async open(options: SchemaTrackerOptions): Promise<SchemaTracker> {
    const schemaTracker = new SchemaTracker(options);
    if (schemaTracker.#isDue()) await schemaTracker.refresh();
    else await schemaTracker.#inTurn(() => schemaTracker.#follow(BUSY_TRIES));
    return schemaTracker;
  }

  /** The source's tables. */
  get tables(): SourceTable[] {
    return this.#schema.tables;
  }

  /** The replica's. */
  get catalog(): Catalog {
    return this.#catalog;
  }

  get rebuild(): TableSpec[] {
    return this.#plan.rebuild;
  }

  table(id: string): TableShape {
    return {
      source: this.#schema.tables.find((table) => table.id === id),
      live: this.#catalog.get(id),
      rebuild: this.#plan.rebuild.find((spec) => spec.tableId === id),
    };
  }

  /**
   * To be called before each page: makes the look that is due or that somebody requested, and changes what was busy
   * when last tried.
   */
  async refreshIfDue(): Promise<void> {
    const { cache, schemaPollMs } = this.#options;
    if (cache.schemaCheckRequestedAt || (schemaPollMs > 0 && this.#isDue())) await this.refresh();
    else if (performance.now() >= this.#retryAt) await this.#inTurn(() => this.#follow(1));
  }

  /** Makes sure that the schema at hand was asked for after `since` (performance.now()), by whoever it was. */
  async refresh(since = performance.now()): Promise<void> {
    while (this.#options.cache.schemaSeenAt < since || this.#schema !== this.#options.cache.schema) {
      await this.#inTurn(async () => {
        await this.#askSchema();
        await this.#follow(BUSY_TRIES);
      });
    }
  }

  /** Has nobody in this sync had cells of this table that its columns cannot hold? */
  isFirstSuspicion(tableId: string): boolean {
    const isFirst = !this.#suspected.has(tableId);
    this.#suspected.add(tableId);
    return isFirst;
  }

  /** Reads the replica's catalog again: one that is being read just now may be older. */
  async reload(): Promise<void> {
    const before = this.#readsBegun;
    while (this.#catalogRead <= before) await this.#inTurn(() => this.#follow(1));
  }

  #isDue(): boolean {
    const { cache, schemaPollMs, reader } = this.#options;
    const { schema, schemaSeenAt, schemaCheckRequestedAt } = cache;
    if (!schema || schemaCheckRequestedAt) return true;
    // The request waits behind those of the tables: it is made so much earlier.
    const aheadMs = ((schema.tables.length + 1) / reader.share()) * 1000;
    return performance.now() - schemaSeenAt >= schemaPollMs - Math.min(aheadMs, schemaPollMs / 2);
  }

  /** One after the other; who finds one under way waits for that one instead. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turn ??= work().finally(() => {
      this.#turn = undefined;
    });
    return this.#turn;
  }

  async #askSchema(): Promise<void> {
    const { cache, reader, onRequestedSchemaCheck } = this.#options;
    const requestedAt = cache.schemaCheckRequestedAt;
    let askedAt = 0;
    const getSchema = (signal: AbortSignal, source: SourceConnection) => {
      askedAt = performance.now();
      return source.getSchema(reader.sourceBaseId, signal);
    };
    const schema = await ask(reader, getSchema, "schema");
    // The one that is there is kept where it is the same: what was worked out from it holds.
    if (!Bun.deepEquals(schema, cache.schema)) cache.schema = schema;
    cache.schemaSeenAt = askedAt;
    if (!requestedAt) return;
    cache.schemaCheckMadeFor = requestedAt;
    if (cache.schemaCheckRequestedAt === requestedAt) cache.schemaCheckRequestedAt = null;
    onRequestedSchemaCheck?.(requestedAt);
  }

  /** Brings the replica in line with the schema at hand; what queries hold is left for later after `tries`. */
  async #follow(tries: number): Promise<void> {
    const { cache, replica, epoch, signal, onShapeChange } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const seenAt = cache.schemaSeenAt;
      await this.#readCatalog();
      await this.#tellMisplaced();
      cache.namesSeenAt = Math.max(cache.namesSeenAt, seenAt);
      for (const { id } of cache.schema!.tables) this.#confirmedDrops.delete(id);
      await this.#makePlan();
      if (this.#plan.drop.length > 0 && !(await this.#confirmDrops())) continue;
      const isInPlace = this.#plan.inPlace.length > 0 || this.#plan.drop.length > 0;
      // The shapes are others once names have changed.
      const narrowed = isInPlace ? [] : this.#narrowed();
      if (narrowed.length > 0 && !Bun.deepEquals(narrowed, this.#confirmedNarrow)) {
        this.#confirmedNarrow = narrowed;
        await this.#askSchema();
        continue;
      }
      this.#schema = cache.schema!;
      this.#retryAt = Number.POSITIVE_INFINITY;
      if (!isInPlace && narrowed.length === 0) return;
      try {
        if (isInPlace)
          await changeShape(replica, epoch, this.#catalog, this.#plan, (changes) => onShapeChange?.(changes));
        for (const { tableId } of this.#plan.drop) cache.tables.delete(tableId);
        for (const spec of narrowed) {
          const live = this.#catalog.get(spec.tableId)!;
          if (!(await dropColumns(replica, epoch, live, spec))) this.#notNarrowed.add(spec.tableId);
          else onShapeChange?.(shapeChanges(live.spec, spec));
        }
        await settleDependents(replica);
      } catch (error) {
        // A table was swapped in since the catalog was read, or a name was taken: planned anew, it may well go.
        const isStale = isBasetideError(error, "shape_changed");
        if (!isStale && !isBasetideError(error, "replica_busy")) throw error;
        this.#retryAt = performance.now() + BUSY_PAUSE_MS * (0.5 + Math.random());
        if (attempt >= tries) {
          await this.#readCatalog();
          return;
        }
        await wait(BUSY_PAUSE_MS * (0.5 + Math.random()), signal);
      }
    }
  }

  /** Tables of which nothing but columns is to go: they need not be read again. */
  #narrowed(): TableSpec[] {
    return this.#plan.rebuild.filter((spec) => {
      const live = this.#catalog.get(spec.tableId);
      return live && onlyDropsColumns(live.spec, spec) && !this.#notNarrowed.has(spec.tableId);
    });
  }

  async #readCatalog(): Promise<void> {
    const read = ++this.#readsBegun;
    this.#catalog = await loadCatalog(this.#options.replica);
    this.#catalogRead = read;
  }

  /**
   * Before the catalog follows names that have moved, lest this process ends on the way; and afterwards, as writes were
   * shown by the old names until then.
   */
  async #tellMisplaced(): Promise<void> {
    const { cache, replica, reader, onMisplaced } = this.#options;
    const moved = movedNames(this.#catalog, cache.schema!);
    if (!onMisplaced || isSameMove(moved, this.#moved)) return;
    const records = await misplacedWrites(replica, [this.#moved, moved]);
    if (records.length > 0) {
      reader.log.info({ records: records.length }, "names have moved: records are read again");
      await onMisplaced(records);
    }
    this.#moved = moved;
  }

  async #makePlan(): Promise<void> {
    const { cache, replica, settings } = this.#options;
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
        )
      : plan;
  }

  /**
   * A table is dropped only when a second look misses it too; a base without any table, only when that has lasted
   * for longer than the source's spells of empty answers.
   *
   * @returns whether the plan still holds
   */
  async #confirmDrops(): Promise<boolean> {
    const { cache, signal } = this.#options;
    const { emptySpellMs } = cache;
    const missing = new Set(this.#plan.drop.map((spec) => spec.tableId));
    if (missing.isSubsetOf(this.#confirmedDrops)) return true;
    const until = performance.now() + emptySpellMs;
    await this.#askSchema();
    while (cache.schema!.tables.length === 0 && this.#catalog.size > 0 && performance.now() < until) {
      await wait(emptySpellMs / 10, signal);
      await this.#askSchema();
    }
    for (const id of missing) this.#confirmedDrops.add(id);
    return false;
  }
}
