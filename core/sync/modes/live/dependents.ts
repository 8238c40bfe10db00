/**
 * Finds the records that depend on changed records, by the links in the replica and in the records that were just
 * read.
 */
import { isBasetideError } from "../../../errors";
import { linkedIds, linkingIds, type Replica } from "../../../replica";
import type {
  ChangedCells,
  Dependents,
  Hop,
  SourceConnection,
  SourceRecord,
  SourceSchema,
} from "../../../source";
import type { SchemaTracker } from "../../engine";
import type { BaseCache, DirtyRecord } from "../../state";

export type IdsByTable = Map<string, Set<string>>;

interface Setting {
  replica: Replica;
  schemaTracker: SchemaTracker;
  cache: Pick<BaseCache, "schema">;
  connection: SourceConnection;
  /** Links beyond the first are not in the replica. */
  linkedRecordsAsText: boolean;
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
    if (schema && feed && schema !== this.#schema) {
      this.#schema = schema;
      const changesByItself = feed.changesByItself(schema, { hasLastingUrls });
      this.#known = { graph: feed.dependents(schema), changesByItself };
    }
    return this.#known;
  }

  /**
   * Returns the records that must be read again because these changed.
   *
   * @param fresh the changed records as they were just read, if they were
   */
  async of({ cells, relinked }: Changed, fresh: Fresh = new Map()): Promise<IdsByTable> {
    const { graph } = this;
    if (!graph || cells.length === 0) return new Map();
    return graph.records(cells, (hop, ids) => this.#linking(hop, ids, relinked, fresh));
  }

  async #linking(hop: Hop, ids: string[], relinked: Relinked, fresh: Fresh): Promise<Set<string>> {
    try {
      return await this.#find(hop, ids, relinked, fresh);
    } catch (error) {
      if (!isBasetideError(error, "shape_changed")) throw error;
      await this.#setting.schemaTracker.reload();
      return this.#find(hop, ids, relinked, fresh);
    }
  }

  /**
   * Finds linking records through the inverse link: the changed records themselves contain the same links, so no
   * search is needed. But if the inverse link has changed, or its record is gone, a write through the proxy may have
   * been applied first: then only the other records still contain the previous links.
   */
  async #find(hop: Hop, ids: string[], relinked: Relinked, fresh: Fresh): Promise<Set<string>> {
    const { replica, schemaTracker, linkedRecordsAsText } = this.#setting;
    const from = schemaTracker.catalog.get(hop.fromTableId);
    // An inverse that is not copied leads nowhere.
    const inverse = from?.spec.columns.find(({ fieldId }) => fieldId === hop.inverseLinkFieldId)?.fieldId;
    const found = new Set<string>();
    const add = (all: Iterable<string>) => {
      for (const id of all) found.add(id);
    };
    let searched = ids;
    if (inverse !== undefined && from) {
      for (const id of ids) add(links(fresh.get(id)?.fields[inverse]));
      add(await linkedIds(replica, from, inverse, ids));
      const isRelinked = (id: string) => relinked.has(id) && (relinked.get(id)?.has(inverse) ?? true);
      if (!linkedRecordsAsText) searched = fresh.size > 0 ? [] : ids.filter(isRelinked);
    }
    const to = schemaTracker.catalog.get(hop.tableId);
    if (to && searched.length > 0) add(await linkingIds(replica, to, hop.viaLinkFieldId, searched));
    return found;
  }
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
