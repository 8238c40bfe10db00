/**
 * A source in memory, below HTTP: tables whose lists read the live state page by page, and whatever failure a test
 * puts in front of a call.
 */
import { BasetideError } from "../../core/errors";
import type {
  Platform,
  RecordPage,
  SourceConnection,
  SourceRecord,
  SourceTable,
} from "../../core/source/types";

export interface FakeTable {
  table: SourceTable;
  /** In the order that lists have them. */
  records: Map<string, SourceRecord>;
}

export class FakeSource {
  readonly tables: FakeTable[] = [];
  pageSize = 100;
  /** An iterator is a fixed list of ids; cells are read when their page is. */
  readonly #iterators: string[][] = [];
  /** Calls that were made, newest last: `schema`, `list tbl1 0`. */
  readonly calls: string[] = [];
  /** Awaited before each call is answered; throws to fail it. */
  before: (call: string) => void | Promise<void> = () => {};
  /** May change an answered page. */
  onPage: (call: string, page: RecordPage) => RecordPage = (_, page) => page;

  add(table: SourceTable, records: SourceRecord[]): FakeTable {
    const added = { table, records: new Map(records.map((record) => [record.id, record])) };
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
      whoami: async () => ({ id: "usr1" }),
      listBases: async () => [{ id: "app1", name: "Fake", permission: "create" }],
      getSchema: async () => {
        await call("schema");
        return { tables: structuredClone(this.tables.map(({ table }) => table)) };
      },
      listPage: async (_base, table, { offset }) => {
        const [iterator, from] = offset?.split("/").map(Number) ?? [this.#iterators.length, 0];
        const what = `list ${table.id} ${from}`;
        await call(what);
        const { records } = find(table.id);
        this.#iterators[iterator!] ??= [...records.keys()];
        const ids = this.#iterators[iterator!]!;
        const next = from! + this.pageSize;
        const page = ids.slice(from, next).flatMap((id) => records.get(id) ?? []);
        return this.onPage(what, pageOf(page, next < ids.length ? `${iterator}/${next}` : undefined));
      },
      listByIds: async (_base, table, ids) => {
        await call(`ids ${table.id}`);
        return pageOf(ids.flatMap((id) => find(table.id).records.get(id) ?? []));
      },
      getRecord: async (_base, tableId, id) => {
        await call(`get ${tableId} ${id}`);
        return find(tableId).records.get(id) ?? null;
      },
    };
  }

  platform(): Platform {
    return { id: "fake", name: "Fake", keyHelpUrl: "https://example.org", connect: () => this.connection() };
  }
}

/** A page of these records. */
export function pageOf(records: SourceRecord[], offset?: string): RecordPage {
  const copies = structuredClone(records);
  return {
    size: copies.length,
    offset,
    id: (index) => copies[index]!.id,
    fingerprint: (index) => Bun.hash.wyhash(JSON.stringify(copies[index])),
    record: (index) => copies[index]!,
    hasAttachments: () => false,
  };
}
