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
import type { BaseMemory } from "../state";
import { isSameMove, type Misplaced, type MovedNames, misplacedWrites, movedNames } from "./moved-names";
import { ask, type Reader } from "./reader";

/** Tries at once to change tables that queries hold, and the pause between them; then syncing goes on meanwhile. */
const BUSY_TRIES = 4;
const BUSY_PAUSE_MS = 250;

export interface Look {
  replica: Replica;
  reader: Reader;
  epoch: number;
  memory: BaseMemory;
  settings: TypeSettings;
  schemaPollMs: number;
  signal: AbortSignal;
  /** Told of every change of shape that was carried out. */
  onShapeChange?: ((changes: ShapeChange[]) => void) | undefined;
  /** Told of records that were written by names that have changed hands: they have to be read again. */
  onMisplaced?: ((records: Misplaced[]) => Promise<void>) | undefined;
  /** Told when the look that somebody requested then has been made. */
  onRequestedLook?: ((requestedAt: Date) => void) | undefined;
}

/** A table as the source has it, as the replica has it, and as it is to be rebuilt, if it is. */
export interface TableShape {
  /** Undefined: the source has it no more. */
  source: SourceTable | undefined;
  live: CatalogTable | undefined;
  rebuild: TableSpec | undefined;
}

export class Shapes {
  readonly #look: Look;
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
  readonly #doubted = new Set<string>();
  #moved: MovedNames = new Map();
  #turn: Promise<void> | undefined;
  #retryAt = Number.POSITIVE_INFINITY;

  private constructor(look: Look) {
    this.#look = look;
  }

  /**
   * The shape that the replica has now. Asks the source at most once per `schemaPollMs` (0: once per sync), unless
   * somebody requested a look; settings that changed are seen at once.
   */
  static async open(look: Look): Promise<Shapes> {
    const shapes = new Shapes(look);
    if (shapes.#isDue()) await shapes.lookAgain();
    else await shapes.#inTurn(() => shapes.#follow(BUSY_TRIES));
    return shapes;
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
  async tend(): Promise<void> {
    const { memory, schemaPollMs } = this.#look;
    if (memory.lookRequestedAt || (schemaPollMs > 0 && this.#isDue())) await this.lookAgain();
    else if (performance.now() >= this.#retryAt) await this.#inTurn(() => this.#follow(1));
  }

  /** Makes sure that the schema at hand was asked for after `since` (performance.now()), by whoever it was. */
  async lookAgain(since = performance.now()): Promise<void> {
    while (this.#look.memory.schemaSeenAt < since || this.#schema !== this.#look.memory.schema) {
      await this.#inTurn(async () => {
        await this.#askSchema();
        await this.#follow(BUSY_TRIES);
      });
    }
  }

  /** Has nobody in this sync had cells of this table that its columns cannot hold? */
  isFirstDoubt(tableId: string): boolean {
    const isFirst = !this.#doubted.has(tableId);
    this.#doubted.add(tableId);
    return isFirst;
  }

  /** Reads the replica's catalog again: one that is being read just now may be older. */
  async reload(): Promise<void> {
    const before = this.#readsBegun;
    while (this.#catalogRead <= before) await this.#inTurn(() => this.#follow(1));
  }

  #isDue(): boolean {
    const { memory, schemaPollMs, reader } = this.#look;
    const { schema, schemaSeenAt, lookRequestedAt } = memory;
    if (!schema || lookRequestedAt) return true;
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
    const { memory, reader, onRequestedLook } = this.#look;
    const requestedAt = memory.lookRequestedAt;
    let askedAt = 0;
    const getSchema = (signal: AbortSignal, source: SourceConnection) => {
      askedAt = performance.now();
      return source.getSchema(reader.sourceBaseId, signal);
    };
    const schema = await ask(reader, getSchema, "schema");
    // The one that is there is kept where it is the same: what was worked out from it holds.
    if (!Bun.deepEquals(schema, memory.schema)) memory.schema = schema;
    memory.schemaSeenAt = askedAt;
    if (!requestedAt) return;
    memory.lookMadeFor = requestedAt;
    if (memory.lookRequestedAt === requestedAt) memory.lookRequestedAt = null;
    onRequestedLook?.(requestedAt);
  }

  /** Brings the replica in line with the schema at hand; what queries hold is left for later after `tries`. */
  async #follow(tries: number): Promise<void> {
    const { memory, replica, epoch, signal, onShapeChange } = this.#look;
    for (let attempt = 1; ; attempt++) {
      const seenAt = memory.schemaSeenAt;
      await this.#readCatalog();
      await this.#tellMisplaced();
      memory.namesSeenAt = Math.max(memory.namesSeenAt, seenAt);
      for (const { id } of memory.schema!.tables) this.#confirmedDrops.delete(id);
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
      this.#schema = memory.schema!;
      this.#retryAt = Number.POSITIVE_INFINITY;
      if (!isInPlace && narrowed.length === 0) return;
      try {
        if (isInPlace)
          await changeShape(replica, epoch, this.#catalog, this.#plan, (changes) => onShapeChange?.(changes));
        for (const { tableId } of this.#plan.drop) memory.tables.delete(tableId);
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
    this.#catalog = await loadCatalog(this.#look.replica);
    this.#catalogRead = read;
  }

  /**
   * Before the catalog follows names that have moved, lest this process ends on the way; and afterwards, as writes were
   * shown by the old names until then.
   */
  async #tellMisplaced(): Promise<void> {
    const { memory, replica, reader, onMisplaced } = this.#look;
    const moved = movedNames(this.#catalog, memory.schema!);
    if (!onMisplaced || isSameMove(moved, this.#moved)) return;
    const records = await misplacedWrites(replica, [this.#moved, moved]);
    if (records.length > 0) {
      reader.log.info({ records: records.length }, "names have moved: records are read again");
      await onMisplaced(records);
    }
    this.#moved = moved;
  }

  async #makePlan(): Promise<void> {
    const { memory, replica, settings } = this.#look;
    const plan = planSchema(this.#catalog, memory.schema!, settings);
    const givesNames = plan.rebuild.length > 0 || plan.inPlace.length > 0;
    this.#plan = givesNames
      ? planSchema(
          this.#catalog,
          memory.schema!,
          settings,
          await foreignNames(
            replica,
            memory.schema!.tables.map(({ id }) => id),
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
    const { memory, signal } = this.#look;
    const { emptySpellMs } = memory;
    const missing = new Set(this.#plan.drop.map((spec) => spec.tableId));
    if (missing.isSubsetOf(this.#confirmedDrops)) return true;
    const until = performance.now() + emptySpellMs;
    await this.#askSchema();
    while (memory.schema!.tables.length === 0 && this.#catalog.size > 0 && performance.now() < until) {
      await wait(emptySpellMs / 10, signal);
      await this.#askSchema();
    }
    for (const id of missing) this.#confirmedDrops.add(id);
    return false;
  }
}
