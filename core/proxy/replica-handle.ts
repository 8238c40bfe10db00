/** One replica as used by proxied writes: its cached tables, and its functions, each with a time limit. */

import { withTimeout } from "../async";
import { type ErrorCode, isBasetideError } from "../errors";
import { LruMap } from "../lru-map";
import type { AttachmentSigner } from "../replica";
import {
  applyRowImages,
  beginWrite,
  type CatalogTable,
  type CellIssue,
  compileMapper,
  issuesOf,
  LONGEST_ANSWER_MS,
  latestReadVersions,
  loadCatalog,
  locateRecords,
  mapRecords,
  type RecordMapper,
  type Replica,
  recordRowImage,
  takeReadVersion,
} from "../replica";
import type { SourceRecord, SourceSchema } from "../source";
import { oddIssues } from "../sync/engine";
import { answerRead, type ReadAnswer, type ReadRequest } from "./reads";
import { Rereads } from "./rereads";
import { findNamedTable, isTableOrFieldId, ofCatalog } from "./table-view";

const AWAY: ErrorCode = "replica_unavailable";
/** Maximum number of remembered records whose images had cells that do not fit. */
const MAX_ODD = 1000;
/** If tables were loaded longer ago than this, they are loaded again before a read is left to the source, ms. */
const MAX_AGE_MS = 5000;
/** The schema may change while a read is answered, but not at every attempt. */
const MAX_TRIES = 5;

/** A table of the replica, with the mapper for its records. */
export interface LiveTable extends CatalogTable {
  map: RecordMapper;
}

/** What a replica says before a write is sent. */
export interface BegunWrite {
  readVersion: number;
  /** A table that has one of the write's records, as far as is known. */
  locatedIn?: string;
}

export interface RowImages {
  readVersion: number;
  records: SourceRecord[];
  gone: string[];
}

export class ReplicaHandle {
  readonly #replica: Replica;
  readonly #loadSigner: () => Promise<AttachmentSigner | undefined>;
  /** Reads records from the source again, for all writes that wait for them. */
  readonly rereads = new Rereads((tableId, ids) =>
    withTimeout(LONGEST_ANSWER_MS, AWAY, latestReadVersions(this.#replica, tableId, ids)),
  );
  #tables: Promise<Map<string, LiveTable>> | undefined;
  /** As `#tables`, but those of the last load that has ended. */
  #loaded: Map<string, LiveTable> | undefined;
  /** performance.now() */
  #loadedAt = Number.NEGATIVE_INFINITY;
  /** When images with cells that do not fit were last requested for records, performance.now(); by record id. */
  readonly oddAt = new LruMap<string, number>(MAX_ODD);
  /** The source's schema as last requested; for names that the catalog does not have. */
  schema: { value: SourceSchema; at: number } | undefined;

  /** @param loadSigner loads the base's current signer; called only if tables have attachment URLs of ours */
  constructor(replica: Replica, loadSigner: () => Promise<AttachmentSigner | undefined>) {
    this.#replica = replica;
    this.#loadSigner = loadSigner;
  }

  readVersion(): Promise<number> {
    return withTimeout(LONGEST_ANSWER_MS, AWAY, takeReadVersion(this.#replica));
  }

  /**
   * Takes a read version, and in the same statement looks for the write's records in the table that the catalog has under
   * its name. An id names its table for sure.
   *
   * @throws BasetideError `replica_unavailable`; `replica_busy` if another transaction locks the table
   */
  async beginWrite(tableRef: string, ids: readonly string[]): Promise<BegunWrite> {
    const table = ids.length === 0 || isTableOrFieldId(tableRef) ? undefined : this.#named(tableRef);
    if (!table) return { readVersion: await this.readVersion() };
    try {
      const begun = await withTimeout(LONGEST_ANSWER_MS, AWAY, beginWrite(this.#replica, table, ids));
      const { readVersion, isLocated } = begun;
      return { readVersion, ...(isLocated && { locatedIn: table.spec.tableId }) };
    } catch (error) {
      if (!isBasetideError(error, "shape_changed")) throw error;
      return { readVersion: await this.readVersion() };
    }
  }

  /** Does not wait for the tables: they are loaded for the next write. */
  #named(tableRef: string): LiveTable | undefined {
    if (!this.#loaded) this.tables().catch(() => {});
    const tables = [...(this.#loaded?.values() ?? [])];
    const found = findNamedTable(tables.map(ofCatalog), tableRef);
    const table = found && this.#loaded!.get(found.tableId);
    return table?.taken === undefined ? table : undefined;
  }

  /** The tables by the source's table id, as last loaded. */
  tables(): Promise<Map<string, LiveTable>> {
    this.#tables ??= this.#load();
    return this.#tables;
  }

  reloadTables(): Promise<Map<string, LiveTable>> {
    this.#tables = this.#load();
    return this.#tables;
  }

  /**
   * Applies images. A cell that does not fit its column's type may mean that the field has another type by now, or its
   * name belongs to another field. I6. An image that would replace a value with NULL for that reason is not applied: a
   * sync shows the record once a schema check has explained the cell. If the keys of an image are names, it counts as
   * lost, too.
   *
   * @returns the ids whose image lost; `odd`: those with such a cell that was not reported before
   */
  async apply(
    table: LiveTable,
    { readVersion, records, gone }: RowImages,
    isByName: boolean,
  ): Promise<{ lost: string[]; odd: string[] }> {
    const issues: CellIssue[] = [];
    const rows = mapRecords(table.map, records, issues);
    const { odd, hiding } = await this.#newlyOdd(table, issues);
    const isLeftOut = (id: unknown) => (isByName ? odd : hiding).has(id as string);
    const images = {
      epoch: null,
      readVersion,
      rows: rows.filter((row) => !isLeftOut(row.id)),
      gone,
      issues: issues.filter(({ recordId }) => !isLeftOut(recordId)),
      records: records.filter(({ id }) => !isLeftOut(id)),
    };
    const { lost } = await withTimeout(LONGEST_ANSWER_MS, AWAY, applyRowImages(this.#replica, table, images));
    return { lost: isByName ? [...lost, ...odd] : lost, odd: [...odd] };
  }

  /**
   * Returns the records whose cells do not fit their columns' types, except those already known; `hiding`: those of
   * them whose columns are not NULL for such a cell yet.
   */
  async #newlyOdd(
    { spec }: LiveTable,
    issues: CellIssue[],
  ): Promise<{ odd: Set<string>; hiding: Set<string> }> {
    const odd = oddIssues(spec, issues);
    if (odd.length === 0) return { odd: new Set(), hiding: new Set() };
    const ids = odd.map(({ recordId }) => recordId);
    const known = await withTimeout(LONGEST_ANSWER_MS, AWAY, issuesOf(this.#replica, spec.name, ids));
    const knownOf = ({ recordId, column }: CellIssue) =>
      known.find((one) => one.record_id === recordId && one.column === column);
    const news = odd.filter((issue) => knownOf(issue)?.value !== issue.value);
    const idsOf = (some: CellIssue[]) => new Set(some.map(({ recordId }) => recordId));
    return { odd: idsOf(news), hiding: idsOf(news.filter((issue) => !knownOf(issue))) };
  }

  /** @throws BasetideError `shape_changed`, `replica_unavailable` */
  locate(tables: LiveTable[], ids: readonly string[]): Promise<Map<string, string[]>> {
    return withTimeout(LONGEST_ANSWER_MS, AWAY, locateRecords(this.#replica, tables, ids));
  }

  /**
   * Stores images for the rebuild of a table that does not exist yet.
   *
   * @returns the ids whose image lost
   * @throws BasetideError `shape_changed`: the table exists
   */
  async defer(tableId: string, { readVersion, records, gone }: RowImages): Promise<string[]> {
    const images = [
      ...records.map((record) => ({ id: record.id, record })),
      ...gone.map((id) => ({ id, record: null })),
    ];
    const notes = images.map(async ({ id, record }) =>
      (await recordRowImage(this.#replica, tableId, readVersion, id, record)) ? [] : [id],
    );
    return (await withTimeout(LONGEST_ANSWER_MS, AWAY, Promise.all(notes))).flat();
  }

  /**
   * Answers a read from the replica's current state.
   *
   * @param failing ids of tables that the sync cannot read: the replica does not have their current state
   * @returns undefined for a read that only the source can answer
   * @throws BasetideError `replica_unavailable`
   */
  async answer(request: ReadRequest, failing: readonly string[]): Promise<ReadAnswer | undefined> {
    let tables = await this.tables();
    for (let tries = 1; ; tries++) {
      try {
        const current =
          failing.length === 0 ? tables : new Map([...tables].filter(([id]) => !failing.includes(id)));
        const answer = await withTimeout(
          LONGEST_ANSWER_MS,
          AWAY,
          answerRead(this.#replica, current, request),
        );
        // A name that the cached tables do not have may be newer than they are.
        if (answer || performance.now() - this.#loadedAt < MAX_AGE_MS) return answer;
      } catch (error) {
        if (!isBasetideError(error, "shape_changed") || tries === MAX_TRIES) throw error;
      }
      tables = await this.reloadTables();
    }
  }

  close(): Promise<void> {
    return this.#replica.close();
  }

  #load(): Promise<Map<string, LiveTable>> {
    this.#loadedAt = performance.now();
    const loading = this.#loadTables();
    loading.then(
      (tables) => {
        this.#loaded = tables;
      },
      () => {
        if (this.#tables === loading) this.#tables = undefined;
      },
    );
    return loading;
  }

  /** The key is loaded after the catalog, so it is never older than that of the tables. */
  async #loadTables(): Promise<Map<string, LiveTable>> {
    const catalog = await withTimeout(LONGEST_ANSWER_MS, AWAY, loadCatalog(this.#replica));
    const hasOwnUrls = catalog
      .values()
      .some(({ spec }) => spec.columns.some(({ attachmentUrls }) => attachmentUrls !== undefined));
    const signer = hasOwnUrls ? await this.#loadSigner() : undefined;
    return new Map(
      [...catalog].map(([id, table]) => [id, { ...table, map: compileMapper(table.spec, signer) }]),
    );
  }
}
