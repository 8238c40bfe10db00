/**
 * Reads a thumbnail that the source has made of an attachment, so that a page of the console shows it as an image of its
 * own: no other host learns who looks at which record.
 *
 * The address comes from the source's answer, and is refused unless it is allowed (`core/net/guarded-request.ts`). Only the bytes decide what it is: a picture
 * of pixels, or nothing. An SVG or a page named like a picture is nothing.
 */
import { Turns } from "../async";
import type { Config } from "../config";
import { BasetideError } from "../errors";
import { guardedRequest } from "../net";

/** Of one account at a time; the next ones wait. Browsers open as many connections to a host. */
const AT_ONCE = 6;
/** Airtable's largest thumbnails that are shown have 512 pixels, bytes. */
const MOST_BYTES = 1_000_000;

/** How files begin, in hexadecimal digits: formats of pixels alone, without a language that could run. */
const BEGINNINGS: [type: string, begins: RegExp][] = [
  ["image/png", /^89504e470d0a1a0a/],
  ["image/jpeg", /^ffd8ff/],
  ["image/gif", /^47494638(37|39)61/],
  ["image/webp", /^52494646.{8}57454250/],
];

export interface Thumbnail {
  /** Media type. */
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const turns = new Turns<string>(AT_ONCE);

/**
 * Reads the thumbnail at `url`.
 *
 * @param accountId those of one account wait for each other
 * @returns null if there is no picture, or a larger one than any thumbnail
 * @throws BasetideError `source_unavailable` if its host is not allowed, fails, or takes longer than the source may
 */
export function fetchThumbnail(
  { config }: { config: Pick<Config, "privateDestinations" | "upstreamTimeoutMs"> },
  accountId: string,
  url: string,
): Promise<Thumbnail | null> {
  return turns.run(accountId, async () => {
    const bytes = await fetchBytes(url, config).catch((cause) => {
      throw new BasetideError("source_unavailable", "The picture cannot be read now", { cause });
    });
    const type = bytes && typeOf(bytes);
    return bytes && type ? { type, bytes } : null;
  });
}

async function fetchBytes(
  url: string,
  { privateDestinations, upstreamTimeoutMs }: Pick<Config, "privateDestinations" | "upstreamTimeoutMs">,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const { status, bytes } = await guardedRequest(url, {
    allowed: privateDestinations,
    signal: AbortSignal.timeout(upstreamTimeoutMs),
    mostBytes: MOST_BYTES,
  });
  return status === 200 && bytes.length <= MOST_BYTES ? bytes : null;
}

function typeOf(bytes: Uint8Array): string | undefined {
  const beginning = Buffer.from(bytes.subarray(0, 12)).toString("hex");
  return BEGINNINGS.find(([, begins]) => begins.test(beginning))?.[0];
}
