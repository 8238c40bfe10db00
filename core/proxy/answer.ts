/**
 * Parses what the source's answer to a write says about records. Parses defensively: unknown fields and shapes are not
 * errors.
 */
import { isObject, objectIn } from "../json";
import { proxied } from "../source";

/** A record of an answer. The keys of `fields` are field names or field ids, possibly mixed; empty cells are absent. */
export interface AnsweredRecord {
  id: string;
  createdTime: string;
  fields: Record<string, unknown>;
}

export interface WriteAnswer {
  /** Whole records. */
  records: AnsweredRecord[];
  /** Ids of deleted records. */
  gone: string[];
}

/**
 * Reads `{id, createdTime, fields}`, `{id, deleted: true}`, and `{records: [either, …]}`.
 *
 * @returns null if the text is not JSON or has another shape: it is then unknown which records were written
 */
export function readWriteAnswer(text: string): WriteAnswer | null {
  const body = objectIn(text);
  if (!body) return null;
  const items = Array.isArray(body.records) ? body.records : [body];
  // The last item for a record wins: only one image of a record is applied.
  const last = new Map<string, AnsweredRecord | null>();
  for (const item of items) {
    if (!isObject(item) || !isRecordId(item.id)) return null;
    const { id, createdTime, fields } = item;
    if (item.deleted === true) last.set(id, null);
    else if (typeof createdTime === "string" && isObject(fields)) last.set(id, { id, createdTime, fields });
    else return null;
  }
  return {
    records: [...last.values()].filter((record) => record !== null),
    gone: [...last].filter(([, record]) => record === null).map(([id]) => id),
  };
}

/** Returns the ids in the body of a batch update: `{records: [{id?, fields}]}`. */
export function idsInRequest(text: string): string[] {
  const body = objectIn(text);
  if (!Array.isArray(body?.records)) return [];
  return body.records.flatMap((item: unknown) => (isObject(item) && isRecordId(item.id) ? [item.id] : []));
}

/** Can the source be asked for a record with this id? Otherwise the record could never be repaired. */
export function isRecordId(id: unknown): id is string {
  return typeof id === "string" && proxied.ids.mayBe("record", id);
}
