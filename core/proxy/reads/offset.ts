/** The offset of a list that a replica answers: the last record returned, and how many have been returned. */
import { z } from "zod";

/** Distinguishes these offsets from the source's own, which begin with `itr`. */
const PREFIX = "basetide.";
const shape = z.object({ t: z.string(), a: z.string(), n: z.number().int().min(1) });

interface PageCursor {
  tableId: string;
  after: string;
  given: number;
}

export function isOurOffset(offset: string): boolean {
  return offset.startsWith(PREFIX);
}

export function writeOffset({ tableId, after, given }: PageCursor): string {
  return PREFIX + Buffer.from(JSON.stringify({ t: tableId, a: after, n: given })).toString("base64url");
}

/** @returns undefined for an offset that this proxy did not issue */
export function readOffset(offset: string): PageCursor | undefined {
  try {
    const text = Buffer.from(offset.slice(PREFIX.length), "base64url").toString();
    const { t, a, n } = shape.parse(JSON.parse(text));
    return { tableId: t, after: a, given: n };
  } catch {
    return undefined;
  }
}
