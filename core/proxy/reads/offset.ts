/** The offset of a list that a replica answers: the last record returned, and how many have been returned. */
import * as z from "zod/mini";
import type { RowPosition } from "../../replica";

/** Distinguishes these offsets from the source's own, which begin with `itr`. */
const PREFIX = "basetide.";
const shape = z.object({
  t: z.string(),
  a: z.string(),
  n: z.number().check(z.int(), z.minimum(1)),
  /** Without a sort, absent. */
  k: z.optional(z.array(z.nullable(z.string()))),
});

interface PageCursor {
  tableId: string;
  after: RowPosition;
  given: number;
}

export function isOurOffset(offset: string): boolean {
  return offset.startsWith(PREFIX);
}

export function writeOffset({ tableId, after, given }: PageCursor): string {
  const k = after.keys.length > 0 ? { k: after.keys } : {};
  return (
    PREFIX + Buffer.from(JSON.stringify({ t: tableId, a: after.id, n: given, ...k })).toString("base64url")
  );
}

/** @returns undefined for an offset that this proxy did not issue */
export function readOffset(offset: string): PageCursor | undefined {
  try {
    const text = Buffer.from(offset.slice(PREFIX.length), "base64url").toString();
    const { t, a, n, k = [] } = shape.parse(JSON.parse(text));
    return { tableId: t, after: { id: a, keys: k }, given: n };
  } catch {
    return undefined;
  }
}
