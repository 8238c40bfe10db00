/**
 * A source in memory, below HTTP: tables whose lists read the live state page by page, and failures that a test can put
 * in front of each call.
 */

import { BasetideError } from "../../core/errors";
import {
  type ChangeFeed,
  factsOf,
  type Platform,
  type RecordPage,
  type SourceConnection,
  type SourceRecord,
  type SourceTable,
} from "../../core/source";
import { dependentsOf, hasHiddenDependencies } from "../../core/source/airtable/dependents";
import { isAsTold } from "../../core/source/airtable/payloads";
import type { ListedPart } from "../../core/source/types";

export interface FakeTable {
  table: SourceTable;
  /** In the order of lists. */
  records: Map<string, SourceRecord>;
  /** When a record's own cells were last changed (ms), for lists of modified records; absent: never. */
  modifiedMs: Map<string, number>;
}

/** The filter of a fake source: records modified at this time (ms) or later. */
export function modifiedSince(sinceMs: number): string {
  return String(sinceMs);
}

export class FakeSource {
  readonly tables: FakeTable[] = [];
  pageSize = 100;
  /** Which records each view shows, by its id. */
  readonly views = new Map<string, (record: SourceRecord) => boolean>();
  /** An iterator is a fixed list of ids; cells are read when their page is. */
  readonly #iterators: string[][] = [];
  /** Calls that were made, newest last: `schema`, `list tbl1 0`, `look tbl1 0` (lists modified records). */
  readonly calls: string[] = [];
  /** Awaited before each call is answered; throws to make it fail. */
  before: (call: string) => void | Promise<void> = () => {};
  /** May change how the schema lists a table, or leave it out. */
  hidden: (table: SourceTable) => SourceTable | undefined = (table) => table;
  /** May change the page of an answer. */
  onPage: (call: string, page: RecordPage) => RecordPage = (_, page) => page;

  /** Reports which fields depend on which; a test itself provides the origin of changes. */
  readonly changeFeed: ChangeFeed = {
    dependents: dependentsOf,
    changesByItself: () => false,
    hasHiddenDependencies,
    isAsTold,
    createWebhook: notThere,
    listWebhooks: notThere,
    deleteWebhook: notThere,
    refreshWebhook: notThere,
    enableNotifications: notThere,
    listPayloads: notThere,
  };

  add(table: SourceTable, records: SourceRecord[]): FakeTable {
    const added = {
      table,
      records: new Map(records.map((record) => [record.id, record])),
      modifiedMs: new Map<string, number>(),
    };
    this.tables.push(added);
    return added;
  }

  connection(): SourceConnection {
    const call = async (what: string) => {
      this.calls.push(what);
      await this.before(what);
    };
    const find = (id: string) => {
      const found = this.tables.find(({ table }) => table.id === id);
      if (!found) throw new BasetideError("source_not_found");
      return found;
    };
    return {
      connections: undefined,
      over: () => this.connection(),
      changeFeed: this.changeFeed,
      whoami: async () => ({ id: "usr1" }),
      listBases: async () => [{ id: "app1", name: "Fake", permission: "create" }],
      getSchema: async () => {
        await call("schema");
        return { tables: structuredClone(this.tables.flatMap(({ table }) => this.hidden(table) ?? [])) };
      },
      isRecordId: (id) => id.startsWith("rec"),
      listPage: async (_base, table, { offset, filter, ...part }, signal) => {
        const [iterator, from] = offset?.split("/").map(Number) ?? [this.#iterators.length, 0];
        const of = part.fields === undefined ? "" : ` of ${part.fields}`;
        const what = `${filter === undefined ? "list" : "look"} ${table.id} ${from}${of}`;
        // Reserved before another caller can ask.
        this.#iterators[iterator!] ??= [];
        await unlessAborted(call(what), signal);
        const { records, modifiedMs, table: current } = find(table.id);
        if (part.fields?.some((id) => !current.fields.some((field) => field.id === id)))
          throw new BasetideError("source_schema_changed");
        if (offset === undefined) {
          const since = Number(filter ?? Number.NEGATIVE_INFINITY);
          const isListed = (id: string) => (modifiedMs.get(id) ?? Number.NEGATIVE_INFINITY) >= since;
          this.#iterators[iterator!] = [...records.keys()].filter(isListed);
        }
        const ids = this.#iterators[iterator!]!;
        const next = from! + this.pageSize;
        const page = ids.slice(from, next).flatMap((id) => records.get(id) ?? []);
        const listed = this.#listed(page, part);
        return this.onPage(what, pageOf(listed, next < ids.length ? `${iterator}/${next}` : undefined));
      },
      listByIds: async (_base, table, ids, part, signal) => {
        await unlessAborted(call(`ids ${table.id}`), signal);
        const found = ids.flatMap((id) => find(table.id).records.get(id) ?? []);
        return this.onPage(`ids ${table.id}`, pageOf(this.#listed(found, part)));
      },
      getRecord: async (_base, tableId, id) => {
        await call(`get ${tableId} ${id}`);
        return find(tableId).records.get(id) ?? null;
      },
    };
  }

  /** The records that the view shows, with these fields. */
  #listed(records: SourceRecord[], { fields, view }: ListedPart): SourceRecord[] {
    const isShown = (view !== undefined && this.views.get(view)) || (() => true);
    return records.filter(isShown).map((record) => ({
      ...record,
      fields: Object.fromEntries(
        Object.entries(record.fields).filter(([id]) => fields?.includes(id) ?? true),
      ),
    }));
  }

  platform(): Platform {
    const connect = () => this.connection();
    const { limits, plans, ids, recordUrl, summary, webhooks } = factsOf("airtable");
    return {
      id: "fake",
      name: "Fake",
      keyHelpUrl: "https://example.org",
      limits,
      plans,
      ids,
      recordUrl,
      summary,
      ...(webhooks && { webhooks }),
      connect,
      modifiedSince,
    };
  }
}

/** A call that is never answered ends like a real one: when it is aborted. */
function unlessAborted(answered: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new BasetideError("sync_stopped")), { once: true });
    answered.then(resolve, reject);
  });
}

async function notThere(): Promise<never> {
  throw new BasetideError("source_not_found");
}

/** A page of these records. */
export function pageOf(records: SourceRecord[], offset?: string): RecordPage {
  const copies = structuredClone(records);
  return {
    size: copies.length,
    offset,
    firstId: copies[0]?.id,
    digest: Number(Bun.hash.wyhash(JSON.stringify(copies)) >> 11n),
    id: (index) => copies[index]!.id,
    fingerprint: (index) => Bun.hash.wyhash(JSON.stringify(copies[index])),
    record: (index) => copies[index]!,
    hasAttachments: () => false,
  };
}
