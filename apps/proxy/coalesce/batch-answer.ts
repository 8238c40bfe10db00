/** Divides the source's answer to several writes into the answers that each of them would have had alone. */
import { isObject, objectIn } from "../../../core/json";
import { bodyText } from "../../../core/proxy";
import type { WholeAnswer } from "../upstream";
import type { SingleWrite } from "./single-write";

/** They describe the bytes of the whole answer. */
const OF_THE_BYTES = ["content-length", "content-encoding", "etag"];
const UNCOMPRESSED_LENGTH = "airtable-uncompressed-content-length";

/** @returns one answer for each of `writes`, in their order; null if the answer does not say which record is whose */
export async function divideAnswer(
  answer: WholeAnswer,
  writes: Pick<SingleWrite, "recordId" | "isList">[],
): Promise<WholeAnswer[] | null> {
  const text = await bodyText(answer.bytes, answer.headers.get("content-encoding"));
  const body = text === null ? undefined : objectIn(text);
  if (!body) return null;
  const { records, ...more } = body;
  if (!Array.isArray(records) || records.length !== writes.length) return null;
  // The source answers in the order of the request.
  const isWhose = (record: unknown, { recordId }: Pick<SingleWrite, "recordId">) =>
    isObject(record) && (recordId === undefined || record.id === recordId);
  if (!writes.every((write, index) => isWhose(records[index], write))) return null;
  return writes.map(({ isList }, index) => {
    const own = isList ? { records: [records[index]], ...more } : { ...records[index], ...more };
    return copyOf(answer, new TextEncoder().encode(JSON.stringify(own)));
  });
}

/** Returns an answer with headers of its own, and the same body unless another is given. */
export function copyOf(answer: WholeAnswer, bytes?: Uint8Array<ArrayBuffer>): WholeAnswer {
  const headers = new Headers(answer.headers);
  if (!bytes) return { ...answer, headers };
  for (const name of OF_THE_BYTES) headers.delete(name);
  if (headers.has(UNCOMPRESSED_LENGTH)) headers.set(UNCOMPRESSED_LENGTH, String(bytes.length));
  return { ...answer, headers, bytes };
}
