/**
 * The calls of one connection: their paths and parameters, and how their answers are read.
 *
 * Requests name tables by id, and cells are keyed by field id, so a rename never affects a call. Every call is one
 * request of the base's quota; `listBases` is one per 1,000 bases, and counts for no base.
 */
import { BasetideError, isBasetideError } from "../../errors";
import type { HeldConnection } from "../../http/connections";
import type { ChangeFeed } from "../change-feed";
import type {
  ListedPart,
  RecordPage,
  RememberedPage,
  SourceBase,
  SourceConnection,
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
  isKnown?: ((digest: bigint) => boolean) | undefined;
  before?: RememberedPage | undefined;
}

/** @param held the connection that the next call is sent on, if one is already taken */
export function createConnection(client: Client, held?: HeldConnection): SourceConnection {
  const { connections } = client;
  const request: Client["request"] = (path, options) => client.request(path, { ...options, held });

  /** The POST form of the call: its parameters may have any length, and no intermediary repeats it. */
  async function listRecords(
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
    const page = await readReceivedPage(
      await client.receive(path, { body, signal, held }),
      table,
      isKnown && { isKnown, before, requested: offset },
    );
    if (page.offset !== undefined && page.offset === offset) {
      throw new BasetideError("source_bad_answer", `Airtable's list of table ${table.id} does not advance`);
    }
    return page;
  }

  let changeFeed: ChangeFeed | undefined;
  return {
    connections,
    over: (next) => createConnection(client, next),
    // Most connections send one request that is not the feed's.
    get changeFeed() {
      changeFeed ??= createChangeFeed(request);
      return changeFeed;
    },

    async whoami(signal) {
      return readIdentity(parseAnswer(await request("/v0/meta/whoami", { signal })));
    },

    async listBases(signal) {
      const bases: SourceBase[] = [];
      let offset: string | undefined;
      for (let pages = 0; pages < MAX_BASES_PAGES; pages++) {
        const query = offset === undefined ? "" : `?offset=${encodeURIComponent(offset)}`;
        const page = readBases(parseAnswer(await request(`/v0/meta/bases${query}`, { signal })));
        bases.push(...page.bases);
        if (page.offset === undefined) return bases;
        if (page.offset === offset) break;
        offset = page.offset;
      }
      throw new BasetideError("source_bad_answer", "Airtable's list of bases does not end");
    },

    async getSchema(baseId, signal, { withViews } = {}) {
      const path = `/v0/meta/bases/${encodeURIComponent(baseId)}/tables`;
      return readSchema(parseAnswer(await request(path, { signal })), withViews);
    },

    isRecordId: (id) => isAirtableId("rec", id),

    listPage: listRecords,

    async listByIds(baseId, table, ids, options, signal) {
      return listRecords(baseId, table, { ...options, filter: idsFormula(ids) }, signal);
    },

    async getRecord(baseId, tableId, recordId, signal) {
      const path = `${recordsPath(baseId, tableId)}/${encodeURIComponent(recordId)}`;
      try {
        const bytes = await request(`${path}?returnFieldsByFieldId=true`, { signal });
        const record = asRecord(parseAnswer(bytes));
        if (record.id === recordId) return record;
      } catch (error) {
        if (isBasetideError(error, "source_not_found") && error.details.type !== "TABLE_NOT_FOUND")
          return null;
        throw error;
      }
      throw new BasetideError("source_bad_answer", `Airtable returned another record than ${recordId}`);
    },
  };
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
