/**
 * Finds the records that depend on changed records, by the links in the records that were just read and in the replica.
 *
 * A column of type `text` holds only the first link of each cell. Where it would be needed, records are requested again
 * for the links in their cells. Links without an inverse leave only one way to find the records that hold them: to read
 * their whole table.
 */
import { asBasetideError, isBasetideError } from "../../../errors";
import { type CatalogTable, linkedIds, linkingIds, type Replica } from "../../../replica";
import type {
  ChangedCells,
  Dependents,
  Hop,
  SourceConnection,
  SourceRecord,
  SourceSchema,
} from "../../../source";
import { metered, type Reader, type SchemaTracker } from "../../engine";
import { type BaseCache, type DirtyRecord, isOfTable, MAX_BATCH } from "../../state";

export interface Reached {
  /** Records that must be read again, by table. */
  records: Map<string, Set<string>>;
  /** Tables that must be read whole. */
  tables: Set<string>;
}

interface Setting {
  replica: Replica;
  schemaTracker: SchemaTracker;
  cache: Pick<BaseCache, "schema" | "failing">;
  connection: SourceConnection;
  /** For records whose links are not all in the replica. */
  reader: Reader;
  /** Attachments are stored with our own URLs. */
  hasLastingUrls: boolean;
}

export class DependentFinder {
  readonly #setting: Setting;
  #schema: SourceSchema | undefined;
  #known: { graph: Dependents; changesByItself: boolean } | undefined;

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  /** The dependencies in the current schema; undefined while it is not known. */
  get graph(): Dependents | undefined {
    return this.#now?.graph;
  }

  /** Whether there are cells that change without an edit, which no feed reports. */
  get changesByItself(): boolean {
    return this.#now?.changesByItself ?? true;
  }

  get #now() {
    const { cache, connection, hasLastingUrls } = this.#setting;
    const { schema } = cache;
    const feed = connection.changeFeed;
    if (schema && !schema.isRecalled && feed && schema !== this.#schema) {
      this.#schema = schema;
      const changesByItself = feed.changesByItself(schema, { hasLastingUrls });
      this.#known = { graph: feed.dependents(schema), changesByItself };
    }
    return this.#known;
  }

  /**
   * Returns what must be read again because these records changed.
   *
   * @param fresh the changed records as they were just read; absent before they are read, or if they no longer exist
   */
  async of({ cells, relinked }: Changed, fresh?: Fresh): Promise<Reached> {
    const { graph } = this;
    const tables = new Set<string>();
    if (!graph || cells.length === 0) return { records: new Map(), tables };
    const search: Search = { relinked, fresh, tables };
    const records = await graph.records(cells, (hop, ids) => this.#linking(hop, ids, search));
    const hops = cells.flatMap(({ tableId, fieldId }) => graph.hops(tableId, fieldId));
    return { records, tables: this.#withTablesBehind(tables, hops) };
  }

  /** The changed records do not wait for a table that cannot be read: it is read whole when it can be. */
  async #linking(hop: Hop, ids: string[], search: Search): Promise<Set<string>> {
    const { schemaTracker, cache } = this.#setting;
    if (!cache.failing.has(hop.tableId)) {
      try {
        return await this.#find(hop, ids, search).catch(async (error: unknown) => {
          if (!isBasetideError(error, "shape_changed")) throw error;
          await schemaTracker.reload();
          return this.#find(hop, ids, search);
        });
      } catch (caught) {
        const error = asBasetideError(caught);
        if (!isOfTable(error) && error.code !== "replica_busy") throw error;
      }
    }
    search.tables.add(hop.tableId);
    return new Set();
  }

  /**
   * Finds linking records through the inverse link: the changed records themselves contain the same links, so no
   * search is needed. But if the inverse link has changed, or its record is gone, a write through the proxy may have
   * been applied first: then only the other records still contain the previous links.
   */
  async #find(hop: Hop, ids: string[], { relinked, fresh, tables }: Search): Promise<Set<string>> {
    const { replica, schemaTracker } = this.#setting;
    const { catalog } = schemaTracker;
    const from = catalog.get(hop.fromTableId);
    const inverse = columnOf(from, hop.inverseLinkFieldId);
    const found = new Set<string>();
    const add = (all: Iterable<string>) => {
      for (const id of all) found.add(id);
    };
    let searched = ids;
    // An inverse that is not copied leads nowhere.
    if (inverse && from) {
      const { fieldId } = inverse;
      for (const id of ids) add(links(fresh?.get(id)?.fields[fieldId]));
      add(await linkedIds(replica, from, fieldId, ids));
      if (fresh && !holdsAllLinks(inverse)) {
        const unread = ids.filter((id) => !fresh.has(id));
        add(await this.#requestedLinks(hop.fromTableId, fieldId, unread));
      }
      const isRelinked = (id: string) => relinked.has(id) && (relinked.get(id)?.has(fieldId) ?? true);
      searched = fresh && fresh.size > 0 ? [] : ids.filter(isRelinked);
    }
    const to = catalog.get(hop.tableId);
    const via = columnOf(to, hop.viaLinkFieldId);
    if (!to || !via || searched.length === 0) return found;
    add(await linkingIds(replica, to, via.fieldId, searched));
    // With an inverse, the feed also reports the records at the other ends of links that have changed.
    if (!inverse && !holdsAllLinks(via)) tables.add(hop.tableId);
    return found;
  }

  /** Returns the links in the cells `fieldId` of these records, as the source has them. */
  async #requestedLinks(tableId: string, fieldId: string, ids: string[]): Promise<string[]> {
    const { reader, schemaTracker } = this.#setting;
    const { source } = schemaTracker.table(tableId);
    if (!source) return [];
    const found: string[] = [];
    for (let from = 0; from < ids.length; from += MAX_BATCH) {
      const pages = await metered(reader, "records").listByIds(source, ids.slice(from, from + MAX_BATCH));
      for (const page of pages) {
        for (let index = 0; index < page.size; index++)
          found.push(...links(page.record(index).fields[fieldId]));
      }
    }
    return found;
  }

  /** Adds the tables that depend on these over some of the hops: it is not known which of their records do. */
  #withTablesBehind(tables: ReadonlySet<string>, hops: Hop[]): Set<string> {
    const reached = new Set(tables);
    for (let known = -1; known < reached.size; ) {
      known = reached.size;
      for (const hop of hops) if (reached.has(hop.fromTableId)) reached.add(hop.tableId);
    }
    const { catalog } = this.#setting.schemaTracker;
    return new Set([...reached].filter((id) => catalog.has(id)));
  }
}

interface Search {
  relinked: Relinked;
  fresh: Fresh | undefined;
  /** Gets the tables whose linking records cannot be found. */
  tables: Set<string>;
}

type LinkColumn = CatalogTable["spec"]["columns"][number];

function columnOf(table: CatalogTable | undefined, fieldId: string | undefined): LinkColumn | undefined {
  return table?.spec.columns.find((column) => column.fieldId === fieldId && column.type === "links");
}

/** As `text`, it holds the first one only. */
function holdsAllLinks({ columnType }: LinkColumn): boolean {
  return columnType === "text[]";
}

type Fresh = ReadonlyMap<string, SourceRecord>;

/** Records whose links have changed, by id: in which fields; null: in all. */
type Relinked = ReadonlyMap<string, ReadonlySet<string> | null>;

interface Changed {
  cells: ChangedCells[];
  relinked: Relinked;
}

/** Returns the cells that the feed reports as changed: all cells of records that were created or destroyed. */
export function changedCells(tableId: string, entries: Iterable<[string, DirtyRecord]>): Changed {
  const byField = new Map<string | null, string[]>();
  const relinked = new Map<string, ReadonlySet<string> | null>();
  for (const [id, { why, fields, isNew }] of entries) {
    if (why === "dependent") continue;
    const all = why === "destroyed" ? null : fields;
    if (!isNew) relinked.set(id, all);
    for (const fieldId of all ?? [null]) {
      const ids = byField.get(fieldId);
      if (ids) ids.push(id);
      else byField.set(fieldId, [id]);
    }
  }
  const cells = [...byField].map(([fieldId, recordIds]) => ({ tableId, fieldId, recordIds }));
  return { cells, relinked };
}

function links(cell: unknown): string[] {
  return Array.isArray(cell) ? cell.filter((id): id is string => typeof id === "string") : [];
}
