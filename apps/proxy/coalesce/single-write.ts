/**
 * Recognizes a create or an update of one record that may be sent together with others.
 *
 * P9. A write is combined only with writes that differ in nothing but their records: same key, method, table as the
 *     client named it, options and headers. Any request that is not understood completely is sent as it is, so that
 *     Airtable alone decides what it means.
 */
import { isObject, objectIn } from "../../../core/json";
import { isRecordId } from "../../../core/proxy";
import type { Call } from "../../../core/source";
import type { UpstreamRequest } from "../upstream";

/** Ten of these are far below Airtable's limit for a request. */
const MAX_BYTES = 100_000;
/** Cells are a few levels deep. */
const MAX_DEPTH = 20;
/** A body of another type, or in another encoding, is not parsed. */
const JSON_TYPE = /^application\/json(?:\s*;\s*charset=utf-8)?$/i;
/**
 * Headers that describe the client or its one request, and change nothing in Airtable's answer, except for its
 * compression: the answers to combined writes are not compressed.
 */
const OF_ONE_CLIENT = new Set([
  "accept-encoding",
  "baggage",
  "forwarded",
  "traceparent",
  "tracestate",
  "user-agent",
  "via",
  "x-forwarded-for",
  "x-real-ip",
  "x-request-id",
]);

export interface SingleWrite {
  /** Writes with the same name may be sent together. */
  group: string;
  /** The path for several records. */
  path: string;
  /** The record that is updated; undefined for a new one. */
  recordId: string | undefined;
  /** The record, as JSON. */
  item: string;
  /** What follows the records in the body, as JSON: the options. */
  options: string;
  /** Does the client expect a list of one record, or the record itself? */
  isList: boolean;
}

/**
 * @param baseId the source's id of the base
 * @returns undefined for any other request
 */
export function singleWriteOf(
  request: UpstreamRequest,
  baseId: string,
  call: Call,
  keyHash: string,
): SingleWrite | undefined {
  const { method, headers, address } = request;
  if (call.kind !== "write" || !(method === "POST" || method === "PATCH" || method === "PUT")) return;
  // airtable.js sends an empty query.
  if (/\?./.test(request.path)) return;
  const body = objectOf(request);
  const record = body && recordOf(body, method, call.ids[0]);
  if (!record) return;
  const { typecast = false, returnFieldsByFieldId = false } = body;
  if (typeof typecast !== "boolean" || typeof returnFieldsByFieldId !== "boolean") return;
  const path = `/v0/${baseId}/${encodeURIComponent(call.tableRef)}`;
  const options = JSON.stringify({ typecast, returnFieldsByFieldId }).slice(1);
  const { id, fields, isList } = record;
  return {
    group: JSON.stringify([keyHash, method, address, path, options, ...sharedHeaders(headers)]),
    path,
    recordId: id,
    item: JSON.stringify({ id, fields }),
    options,
    isList,
  };
}

interface OneRecord {
  id: string | undefined;
  fields: unknown;
  isList: boolean;
}

/** @param idInPath of the record, if the path names one */
function recordOf(
  body: Record<string, unknown>,
  method: string,
  idInPath: string | undefined,
): OneRecord | undefined {
  const { records, fields, typecast: _, returnFieldsByFieldId: __, ...unknown } = body;
  if (Object.keys(unknown).length > 0) return;
  if (records === undefined) {
    // Without an id in its path, an update has a list.
    if (!isPlain(fields) || (method !== "POST" && !isRecordId(idInPath))) return;
    return { id: idInPath, fields, isList: false };
  }
  if (fields !== undefined || idInPath !== undefined) return;
  const item: unknown = Array.isArray(records) && records.length === 1 ? records[0] : undefined;
  if (!isObject(item)) return;
  const { id, fields: cells, ...more } = item;
  if (Object.keys(more).length > 0 || !isPlain(cells)) return;
  if (method === "POST" ? "id" in item : !isRecordId(id)) return;
  return { id: id as string | undefined, fields: cells, isList: true };
}

function objectOf({ body, headers }: UpstreamRequest): Record<string, unknown> | undefined {
  if (!body || body.length > MAX_BYTES) return;
  if (!JSON_TYPE.test(headers.get("content-type") ?? "") || headers.has("content-encoding")) return;
  try {
    return objectIn(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return;
  }
}

/** Are these cells whose JSON is the same after it was parsed, and whose write either succeeds or fails as a whole? */
function isPlain(fields: unknown): boolean {
  return isObject(fields) && Object.values(fields).every((cell) => isRepeatable(cell, 0));
}

function isRepeatable(value: unknown, depth: number): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || value === null) return true;
  if (depth === MAX_DEPTH) return false;
  // Airtable loads attachments by their URLs, and its answer reports failures without naming the record.
  if ("url" in value) return false;
  return Object.values(value).every((part) => isRepeatable(part, depth + 1));
}

function sharedHeaders(headers: UpstreamRequest["headers"]): string[] {
  return [...headers]
    .filter(([name]) => !OF_ONE_CLIENT.has(name))
    .map(([name, value]) => `${name}: ${value}`);
}
