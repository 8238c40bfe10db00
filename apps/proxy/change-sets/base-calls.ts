/**
 * The calls of a change set: requests to this proxy itself, with the base's own key. So a set waits for the base's
 * quota, and is shown in every replica, as a write of any client.
 *
 * No replica answers them, also with the setting `replica_reads`: what SQL shows is compared with them.
 */
import type { Config } from "../../../core/config";
import {
  areById,
  type CellValues,
  COMPUTED_TYPES,
  type HeldItem,
  type OperationKind,
} from "../../../core/control/change-sets";
import { isObject, objectIn } from "../../../core/json";
import { proxied } from "../../../core/source";
import { MINUTE_MS, SECOND_MS } from "../../../core/time-units";
import { READ_HEADER } from "../cors";
import { sendOnceRecorded } from "../recorded-first";
import { SQL_HEADER } from "../write";

type Fetch = (request: Request) => Response | Promise<Response>;

export type Answer =
  /** `isPending`: SQL does not show the write yet. */
  { kind: "made"; body: Record<string, unknown>; isPending: boolean } | Failure;

/** `refused`: the source has not made the write. `unsent`: it has not got it. `unknown`: it may have made it. */
export type Failure =
  | { kind: "refused"; status: number; type: string; message: string }
  | { kind: "unsent" | "unknown"; status: number; type: string; afterMs: number; message: string };

export interface ReadRecord {
  id: string;
  createdTime: string;
  fields: CellValues;
}

/** Ids and names of fields. */
export interface TableFacts {
  /** Their cells cannot be written. */
  computed: Set<string>;
  /** The field by which people tell records apart. */
  primary: Set<string>;
}

type Named<T> = T & { id: string; name: string };

/** The proxy's own answers to a request that the source may have got. */
const MAYBE_SENT = new Set(["PROXY_TIMEOUT", "PROXY_UPSTREAM_UNREACHABLE", "PROXY_ERROR"]);
/** Statuses of the proxy's own answers to a request that it never sends. */
const NEVER_SENT = new Set([400, 404, 410, 413]);
/** Pause if an answer names none, ms. */
const PAUSE_MS = 5000;

const methodOf: Record<OperationKind, string> = { create: "POST", update: "PATCH", delete: "DELETE" };

export class BaseCalls {
  readonly #fetch: Fetch;
  readonly #stop: AbortSignal;
  readonly #address: string;
  readonly #sourceBaseId: string;
  readonly #headers: Record<string, string>;
  #tables: Map<string, TableFacts> | undefined;
  /** How far the source's clock is ahead of this process's, ms; undefined until it has answered. */
  sourceAheadMs: number | undefined;

  /**
   * @param config has this proxy's own URL, and the hosts that it forwards to
   * @param stop takes requests back that wait to be sent
   */
  constructor(
    fetch: Fetch,
    config: Pick<Config, "proxyUrl" | "upstreams">,
    { sourceBaseId, apiKey, stop }: { sourceBaseId: string; apiKey: string; stop: AbortSignal },
  ) {
    const [host] = Object.keys(config.upstreams);
    this.#stop = stop;
    this.#fetch = fetch;
    this.#address = `${config.proxyUrl.replace(/\/$/, "")}/${host}/${proxied.dialect.version}`;
    this.#sourceBaseId = sourceBaseId;
    this.#headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  }

  /**
   * Makes the operations, of one table and kind. The cells of the records in the answer are by id if those that are written are.
   *
   * @param isRecorded they are sent once this has resolved, and not at all if it is false; absent: at once
   */
  write(
    operation: OperationKind,
    table: string,
    items: Pick<HeldItem, "recordId" | "cells">[],
    typecast: boolean,
    isRecorded?: Promise<boolean>,
  ) {
    const query = new URLSearchParams();
    if (operation === "delete") for (const { recordId } of items) query.append("records[]", recordId!);
    const records = items.map(({ recordId, cells }) => ({
      ...(recordId === null ? {} : { id: recordId }),
      fields: cells,
    }));
    const returnFieldsByFieldId = items.some(({ cells }) => cells && areById(cells)) || undefined;
    const body =
      operation === "delete"
        ? undefined
        : { records, typecast: typecast || undefined, returnFieldsByFieldId };
    return this.#ask(methodOf[operation], this.#pathOf(table, query), body, isRecorded);
  }

  /** Reads the records with these ids; those that are gone are missing from the result. */
  async records(table: string, ids: string[], byId: boolean): Promise<ReadRecord[] | Failure> {
    const formula = `OR(${ids.map((id) => `RECORD_ID()='${id}'`).join(",")})`;
    return this.#list(table, {
      filterByFormula: formula,
      ...(byId ? { returnFieldsByFieldId: "true" } : {}),
    });
  }

  /** Lists the records that were created at a moment of the source's clock (ms) or later. */
  createdSince(table: string, sinceMs: number, byId: boolean): Promise<ReadRecord[] | Failure> {
    // Creation times have a resolution of one second, and IS_AFTER is strict.
    const since = new Date(Math.floor(sinceMs / SECOND_MS) * SECOND_MS - 1).toISOString();
    const formula = `IS_AFTER(CREATED_TIME(), '${since}')`;
    return this.#list(table, {
      filterByFormula: formula,
      ...(byId ? { returnFieldsByFieldId: "true" } : {}),
    });
  }

  /** Returns what is known of the tables, by their ids and names. */
  async tables(): Promise<Map<string, TableFacts> | Failure> {
    if (this.#tables) return this.#tables;
    const answer = await this.#ask("GET", `/meta/bases/${this.#sourceBaseId}/tables`);
    if (answer.kind !== "made") return answer;
    const tables = answer.body.tables as Named<{
      primaryFieldId: string;
      fields: Named<{ type: string }>[];
    }>[];
    const keysOf = (fields: Named<object>[]) => new Set(fields.flatMap((field) => [field.id, field.name]));
    this.#tables = new Map(
      tables.flatMap(({ id, name, primaryFieldId, fields }) => {
        const computed = keysOf(fields.filter(({ type }) => COMPUTED_TYPES.has(type)));
        const primary = keysOf(fields.filter((field) => field.id === primaryFieldId));
        const facts = { computed, primary };
        return [
          [id, facts],
          [name, facts],
        ];
      }),
    );
    return this.#tables;
  }

  #pathOf(table: string, query: URLSearchParams): string {
    const text = query.size > 0 ? `?${query}` : "";
    return `/${this.#sourceBaseId}/${encodeURIComponent(table)}${text}`;
  }

  async #list(table: string, parameters: Record<string, string>): Promise<ReadRecord[] | Failure> {
    const records: ReadRecord[] = [];
    for (let offset: string | undefined; ; ) {
      const query = new URLSearchParams({ ...parameters, ...(offset === undefined ? {} : { offset }) });
      const answer = await this.#ask("GET", this.#pathOf(table, query));
      if (answer.kind !== "made") return answer;
      records.push(...(answer.body.records as ReadRecord[]));
      offset = answer.body.offset as string | undefined;
      if (offset === undefined) return records;
    }
  }

  async #ask(method: string, path: string, body?: object, isRecorded?: Promise<boolean>): Promise<Answer> {
    const request = new Request(this.#address + path, {
      method,
      headers: method === "GET" ? { ...this.#headers, [READ_HEADER]: "source" } : this.#headers,
      signal: this.#stop,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    this.#stop.throwIfAborted();
    if (isRecorded) sendOnceRecorded(request, isRecorded);
    const response = await this.#fetch(request);
    const text = await response.text();
    return this.#answerOf(response, text);
  }

  #answerOf({ status, headers }: Response, text: string): Answer {
    const body = objectIn(text);
    const isOwn = body?.sender === "proxy";
    const at = isOwn ? Number.NaN : Date.parse(headers.get("date") ?? "");
    if (Number.isFinite(at)) this.sourceAheadMs = at - Date.now();
    if (status >= 200 && status < 300 && body)
      return { kind: "made", body, isPending: headers.get(SQL_HEADER) === "pending" };
    const { type = "", message = "" } = errorIn(body);
    const said = message || `HTTP ${status}${type ? ` ${type}` : ""}`;
    const after = Math.min(MINUTE_MS, Number(headers.get("retry-after")) * SECOND_MS || PAUSE_MS);
    const refused = { kind: "refused", status, type, message: said } as const;
    const unsent = { kind: "unsent", status, type, afterMs: after, message: said } as const;
    if (isOwn && NEVER_SENT.has(status)) return refused;
    // A key that is refused may be replaced.
    if (isOwn ? !MAYBE_SENT.has(type) : status === 429 || status === 401) return unsent;
    if (isOwn || status >= 500 || status < 300) return { ...unsent, kind: "unknown" };
    return refused;
  }
}

function errorIn(body: Record<string, unknown> | undefined): { type?: string; message?: string } {
  const error = body?.error;
  if (typeof error === "string") return { type: error };
  if (!isObject(error)) return {};
  const { type, message } = error;
  return {
    ...(typeof type === "string" ? { type } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}
