/** The paths of Airtable's API and the meaning of its refusals, as the proxy needs them. */
import type { Call, Dialect } from "../dialect";
import { BILLING_LIMIT } from "./answers";
import { sqlRefusalOf } from "./sqlstates";

/** Airtable itself refuses anything else in the position of a base id. */
const BASE_ID = /^app[0-9A-Za-z]+$/;

export const dialect: Dialect = {
  version: "v0",

  baseIdOf([first, second, third]) {
    const id = first === "meta" && second === "bases" ? third : first === "bases" ? second : first;
    return id !== undefined && BASE_ID.test(id) ? id : undefined;
  },

  callOf(method, parts, query): Call {
    if (method === "GET" || method === "HEAD" || method === "OPTIONS") return { kind: "read" };
    const [first = "", second, third, fourth] = parts;
    if (first === "meta" && second === "bases" && fourth === "tables") return { kind: "schema" };
    if (!BASE_ID.test(first) || second === undefined) return { kind: "other" };
    if (parts.length === 2) return { kind: "write", tableRef: second, ids: queryIds(query) };
    if (parts.length === 3) {
      if (method === "POST") return { kind: third === "listRecords" ? "read" : "other" };
      return { kind: "write", tableRef: second, ids: [third!] };
    }
    if (parts.length === 4 && method === "POST") {
      if (fourth === "uploadAttachment") return { kind: "upload", recordId: second, fieldRef: third! };
      if (third === "sync") return { kind: "sync_csv" };
    }
    return { kind: "other" };
  },

  /** The name of a table, and of the field of an upload. */
  namesIn(segments) {
    if (!BASE_ID.test(segments[0] ?? "")) return [];
    return segments[3] === "uploadAttachment" ? [2] : [1];
  },

  saysCapSpent: (body) => body.includes(BILLING_LIMIT),

  sqlRefusalOf,
};

/** `records[]=rec…`, with or without brackets and indexes. */
function queryIds(query: string): string[] {
  return [...new URLSearchParams(query)]
    .filter(([name]) => /^records(\[\d*\])?$/.test(name))
    .map(([, value]) => value);
}
