/** One replica as proxied writes see it: its tables, remembered, and its functions, none of which hangs for long. */
import type { AttachmentSigner } from "../attachments/link";
import { type ErrorCode, isBasetideError } from "../errors";
import { answerRead, type ReadAnswer, type ReadRequest } from "../reads";
import {
  type Applied,
  applyImages,
  type CatalogTable,
  type CellIssue,
  compileMapper,
  loadCatalog,
  mapRecords,
  noteImage,
  type RecordMapper,
  type Replica,
  takeTicket,
} from "../replica";
import type { SourceRecord, SourceSchema } from "../source/types";
import { within } from "./within";

/** A replica that does not answer within this counts as away, ms; a swap holds a table for less. */
const ANSWER_MS = 3000;
const AWAY: ErrorCode = "replica_unavailable";

/** A table of the replica, and what its records are mapped with. */
export interface LiveTable extends CatalogTable {
  map: RecordMapper;
}

export interface ImagesOfRecords {
  ticket: number;
  records: SourceRecord[];
  gone: string[];
}

export class ReplicaHandle {
  readonly #replica: Replica;
  readonly #loadSigner: () => Promise<AttachmentSigner | undefined>;
  #tables: Promise<Map<string, LiveTable>> | undefined;
  /** The source's schema as somebody asked for it last; for names that the catalog does not have. */
  schema: { value: SourceSchema; at: number } | undefined;

  /** @param loadSigner the base's, as it is then; asked only for tables that have attachment URLs of ours */
  constructor(replica: Replica, loadSigner: () => Promise<AttachmentSigner | undefined>) {
    this.#replica = replica;
    this.#loadSigner = loadSigner;
  }

  ticket(): Promise<number> {
    return within(ANSWER_MS, AWAY, takeTicket(this.#replica));
  }

  /** By the source's table id, as last read. */
  tables(): Promise<Map<string, LiveTable>> {
    this.#tables ??= this.#load();
    return this.#tables;
  }

  reloadTables(): Promise<Map<string, LiveTable>> {
    this.#tables = this.#load();
    return this.#tables;
  }

  /** @throws BasetideError `shape_changed`, `replica_unavailable` */
  apply(table: LiveTable, { ticket, records, gone }: ImagesOfRecords): Promise<Applied> {
    const issues: CellIssue[] = [];
    const rows = mapRecords(table.map, records, issues);
    const images = { epoch: null, ticket, rows, gone, issues, records };
    return within(ANSWER_MS, AWAY, applyImages(this.#replica, table, images));
  }

  /**
   * Keeps images for the rebuild of a table that is not there yet.
   *
   * @returns the ids whose image lost
   * @throws BasetideError `shape_changed`: it is there
   */
  async note(tableId: string, { ticket, records, gone }: ImagesOfRecords): Promise<string[]> {
    const images = [
      ...records.map((record) => ({ id: record.id, record })),
      ...gone.map((id) => ({ id, record: null })),
    ];
    const notes = images.map(async ({ id, record }) =>
      (await noteImage(this.#replica, tableId, ticket, id, record)) ? [] : [id],
    );
    return (await within(ANSWER_MS, AWAY, Promise.all(notes))).flat();
  }

  /**
   * Answers a read as the replica is now.
   *
   * @returns undefined for what only the source can answer
   * @throws BasetideError `replica_unavailable`
   */
  async answer(request: ReadRequest): Promise<ReadAnswer | undefined> {
    const tables = await this.tables();
    try {
      return await within(ANSWER_MS, AWAY, answerRead(this.#replica, tables, request));
    } catch (error) {
      if (!isBasetideError(error, "shape_changed")) throw error;
      return within(ANSWER_MS, AWAY, answerRead(this.#replica, await this.reloadTables(), request));
    }
  }

  close(): Promise<void> {
    return this.#replica.close();
  }

  #load(): Promise<Map<string, LiveTable>> {
    const loading = this.#loadTables();
    loading.catch(() => {
      if (this.#tables === loading) this.#tables = undefined;
    });
    return loading;
  }

  /** The key is asked for after the catalog: it is never an older one than that of the tables. */
  async #loadTables(): Promise<Map<string, LiveTable>> {
    const catalog = await within(ANSWER_MS, AWAY, loadCatalog(this.#replica));
    const hasOwnUrls = catalog
      .values()
      .some(({ spec }) => spec.columns.some(({ attachmentUrls }) => attachmentUrls !== undefined));
    const signer = hasOwnUrls ? await this.#loadSigner() : undefined;
    return new Map(
      [...catalog].map(([id, table]) => [id, { ...table, map: compileMapper(table.spec, signer) }]),
    );
  }
}
