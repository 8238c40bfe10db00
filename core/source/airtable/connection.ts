/**
 * The calls of one connection: their paths and parameters, and how their answers are read.
 *
 * Requests name tables by id, and cells are keyed by field id, so a rename never affects a call. Every call is one
 * request of the base's quota; `listBases` is one per 1,000 bases, and counts for no base.
 */
import { BasetideError, isBasetideError } from "../../errors";
import type { Connections, HeldConnection } from "../../http/connections";
import type { ChangeFeed } from "../change-feed";
import type {
  ListedPart,
  RecordPage,
  RememberedPage,
  SourceBase,
  SourceConnection,
  SourceIdentity,
  SourceRecord,
  SourceSchema,
  SourceTable,
} from "../types";
import { parseAnswer } from "./answers";
import type { Client } from "./client";
import { isAirtableId, limits } from "./limits";
import { asRecord, readReceivedPage } from "./page";
import { readBases, readIdentity, readSchema } from "./schema";
import { createChangeFeed } from "./webhooks";

/** Pages of 1,000 bases after which a list of bases is considered endless. */
const MAX_BASES_PAGES = 1_000;

interface ListOptions extends ListedPart {
  offset?: string | undefined;
  filter?: string | undefined;
  sort?: { field: string; direction: "asc" | "desc" }[] | undefined;
  isKnown?: ((digest: number) => boolean) | undefined;
  before?: RememberedPage | undefined;
}

/** A class, because each request has one of its own, with its connection (`over`). */
export class AirtableConnection implements SourceConnection {
  readonly #client: Client;
  /** Sends the next call, if a connection is already taken for it. */
  readonly #held: HeldConnection | undefined;
  #changeFeed: ChangeFeed | undefined;

  constructor(client: Client, held?: HeldConnection) {
    this.#client = client;
    this.#held = held;
  }

  get connections(): Connections {
    return this.#client.connections;
  }

  over(held: HeldConnection): AirtableConnection {
    return new AirtableConnection(this.#client, held);
  }

  get changeFeed(): ChangeFeed {
    this.#changeFeed ??= createChangeFeed((path, options) => this.#request(path, options));
    return this.#changeFeed;
  }

  async whoami(signal: AbortSignal): Promise<SourceIdentity> {
    return readIdentity(parseAnswer(await this.#request("/v0/meta/whoami", { signal })));
  }

  async listBases(signal: AbortSignal): Promise<SourceBase[]> {
    const bases: SourceBase[] = [];
    let offset: string | undefined;
    for (let pages = 0; pages < MAX_BASES_PAGES; pages++) {
      const query = offset === undefined ? "" : `?offset=${encodeURIComponent(offset)}`;
      const page = readBases(parseAnswer(await this.#request(`/v0/meta/bases${query}`, { signal })));
      bases.push(...page.bases);
      if (page.offset === undefined) return bases;
      if (page.offset === offset) break;
      offset = page.offset;
    }
    throw new BasetideError("source_bad_answer", "Airtable's list of bases does not end");
  }

  async getSchema(
    baseId: string,
    signal: AbortSignal,
    options: { withViews?: boolean; known?: readonly SourceTable[] } = {},
  ): Promise<SourceSchema> {
    const path = `/v0/meta/bases/${encodeURIComponent(baseId)}/tables`;
    return readSchema(parseAnswer(await this.#request(path, { signal })), options);
  }

  isRecordId(id: string): boolean {
    return isAirtableId("rec", id);
  }

  /** The POST form of the call: its parameters may have any length, and no intermediary repeats it. */
  async listPage(
    baseId: string,
    table: SourceTable,
    { offset, filter, sort, fields, view, isKnown, before }: ListOptions,
    signal: AbortSignal,
  ): Promise<RecordPage> {
    const body = {
      pageSize: limits.pageSize,
      returnFieldsByFieldId: true,
      filterByFormula: filter,
      sort,
      fields,
      view,
      offset,
    };
    const path = `${recordsPath(baseId, table.id)}/listRecords`;
    const received = await this.#client.receive(path, { body, signal, held: this.#held });
    const read = readReceivedPage(received, table, isKnown && { isKnown, before, requested: offset });
    const page = read instanceof Promise ? await read : read;
    if (page.offset !== undefined && page.offset === offset) {
      throw new BasetideError("source_bad_answer", `Airtable's list of table ${table.id} does not advance`);
    }
    return page;
  }

  async listByIds(
    baseId: string,
    table: SourceTable,
    ids: readonly string[],
    options: ListedPart & { offset?: string | undefined },
    signal: AbortSignal,
  ): Promise<RecordPage> {
    return this.listPage(baseId, table, { ...options, filter: idsFormula(ids) }, signal);
  }

  async getRecord(
    baseId: string,
    tableId: string,
    recordId: string,
    signal: AbortSignal,
  ): Promise<SourceRecord | null> {
    const path = `${recordsPath(baseId, tableId)}/${encodeURIComponent(recordId)}`;
    try {
      const bytes = await this.#request(`${path}?returnFieldsByFieldId=true`, { signal });
      const record = asRecord(parseAnswer(bytes));
      if (record.id === recordId) return record;
    } catch (error) {
      if (isBasetideError(error, "source_not_found") && error.details.type !== "TABLE_NOT_FOUND") return null;
      throw error;
    }
    throw new BasetideError("source_bad_answer", `Airtable returned another record than ${recordId}`, {
      details: { isRecord: true },
    });
  }

  #request(...[path, options]: Parameters<Client["request"]>): ReturnType<Client["request"]> {
    return this.#client.request(path, { ...options, held: this.#held });
  }
}

function recordsPath(baseId: string, tableId: string): string {
  return `/v0/${encodeURIComponent(baseId)}/${encodeURIComponent(tableId)}`;
}

/** Returns the formula that matches exactly the records with these ids. Ids contain no quotes. */
function idsFormula(ids: readonly string[]): string {
  if (ids.length === 0 || ids.length > limits.pageSize) {
    throw new RangeError(`listByIds takes 1 to ${limits.pageSize} ids, not ${ids.length}`);
  }
  const stranger = ids.find((id) => !isAirtableId("rec", id));
  if (stranger !== undefined) {
    throw new BasetideError("invalid_request", `${JSON.stringify(stranger)} is not a record id (rec…)`);
  }
  return `OR(${ids.map((id) => `RECORD_ID()='${id}'`).join(",")})`;
}
