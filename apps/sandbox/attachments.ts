/**
 * Attachments: writing them, the signed URLs to read them, and their bytes.
 *
 * A URL carries one token: its expiry, a number that makes it different from all earlier ones, and a signature over
 * both. All URLs of one answer carry the same token, so in a cached page only the tokens are replaced (`page.ts`); the
 * placeholder `URL_TOKEN` has a token's length.
 */
import { createHmac, randomBytes } from "node:crypto";
import { deflateSync } from "node:zlib";
import { apiError } from "./errors";
import { isSandboxId, type Random } from "./random";

/** Airtable's own: about two hours (its reference, "Attachments"). */
export const DEFAULT_URL_LIFE_MS = 2 * 3600 * 1000;

/** 9 characters of time, 8 of number, 22 of signature, 2 dashes. */
const TOKEN_LENGTH = 41;

/** The placeholder for a token in a page; random, so that no cell can contain it by chance. */
export const URL_TOKEN = `~${randomBytes(30).toString("base64url")}`
  .slice(0, TOKEN_LENGTH)
  .padEnd(TOKEN_LENGTH, "~");

/** Used in the control API's dumps: a token that never changes and is always valid. */
export const STABLE_TOKEN = "stable";

/** An attachment as it is stored in a cell: without URLs, except the one that it was written with. */
interface StoredAttachment {
  id: string;
  filename: string;
  size: number;
  type: string;
  width?: number;
  height?: number;
  /** The URL that it was written with. */
  url?: string;
}

export class AttachmentStore {
  readonly #secret = randomBytes(32);
  readonly #bytes = new Map<string, Uint8Array>();
  readonly #now: () => number;
  #count = 0;
  urlLifeMs = DEFAULT_URL_LIFE_MS;
  /** The sandbox's own URL, as the prefix of attachment URLs: `http://localhost:4100`. */
  origin = "";

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns a token for the URLs of one answer. */
  token(): string {
    const dies = (this.#now() + this.urlLifeMs).toString(36).padStart(9, "0").slice(-9);
    const number = (this.#count++).toString(36).padStart(8, "0");
    return `${dies}-${number}-${this.#sign(`${dies}-${number}`)}`;
  }

  /** Whether `token` is valid now. `expired` was valid earlier. */
  check(token: string): "good" | "expired" | "forged" {
    if (token === STABLE_TOKEN) return "good";
    const signed = token.slice(0, 18);
    if (token.length !== TOKEN_LENGTH || this.#sign(signed) !== token.slice(19)) return "forged";
    return Number.parseInt(token.slice(0, 9), 36) > this.#now() ? "good" : "expired";
  }

  #sign(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("base64url").slice(0, 22);
  }

  keep(id: string, bytes: Uint8Array): void {
    this.#bytes.set(id, bytes);
  }

  /**
   * The uploaded bytes, also in place of their thumbnails; for an attachment given by URL, a picture of two colors as its
   * thumbnail, and else a text.
   *
   * @param name the last part of the URL
   */
  bytes(id: string, name: string): Uint8Array {
    const uploaded = this.#bytes.get(id);
    if (uploaded) return uploaded;
    return ["small", "large", "full"].includes(name)
      ? twoColors(id)
      : new TextEncoder().encode(`Attachment ${id}\n`);
  }

  clear(): void {
    this.#bytes.clear();
  }

  /** The attachment in the API's form. `token` is `URL_TOKEN` for a page that is filled in later. */
  present(attachment: unknown, token: string): unknown {
    if (!isStoredAttachment(attachment)) return attachment;
    const { id, filename, size, type, width, height } = attachment;
    const root = `${this.origin}/v3/u/${token}/${id}`;
    const shown: Record<string, unknown> = { id };
    if (width !== undefined && height !== undefined) Object.assign(shown, { width, height });
    Object.assign(shown, { url: `${root}/${encodeURIComponent(filename ?? id)}`, filename, size, type });
    if (width !== undefined && height !== undefined) {
      const thumbnail = (name: string, high: number) => ({
        url: `${root}/${name}`,
        width: Math.max(1, Math.round((width / height) * high)),
        height: high,
      });
      shown.thumbnails = {
        small: thumbnail("small", 36),
        large: thumbnail("large", Math.min(512, height)),
        full: thumbnail("full", Math.min(3000, height)),
      };
    }
    return shown;
  }
}

/** A PNG of two pixels, whose colors follow from `text`. */
function twoColors(text: string): Uint8Array {
  const chunk = (type: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(Bun.hash.crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const colors = createHmac("sha256", "colors").update(text).digest().subarray(0, 6);
  // 2 by 1 pixels, 8 bits each of red, green and blue; before each row its filter.
  const header = Buffer.from([0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat([Buffer.alloc(1), colors]))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Whether the cell contains attachments, whose URLs change with each read. */
export function isStoredAttachment(value: unknown): value is StoredAttachment {
  return (
    typeof value === "object" &&
    value !== null &&
    "url" in value &&
    "id" in value &&
    isSandboxId("att", value.id)
  );
}

/**
 * Returns the stored form of a written attachment cell.
 *
 * @param current the current cell: `{id}` keeps one of its attachments
 * @throws ApiError 422 `INVALID_ATTACHMENT_OBJECT`
 */
export function writtenAttachments(value: unknown, current: unknown, random: Random): StoredAttachment[] {
  if (!Array.isArray(value)) throw invalidAttachment();
  const present = Array.isArray(current) ? current.filter(isStoredAttachment) : [];
  return value.map((item: unknown) => {
    if (typeof item !== "object" || item === null) throw invalidAttachment();
    const { id, url, filename } = item as Record<string, unknown>;
    const name = typeof filename === "string" && filename !== "" ? filename : undefined;
    if (typeof id === "string") {
      const kept = present.find((attachment) => attachment.id === id);
      if (!kept) throw invalidAttachment();
      return name === undefined ? kept : { ...kept, filename: name };
    }
    if (typeof url !== "string" || !/^https?:\/\/\S+$/i.test(url)) throw invalidAttachment();
    return newAttachment(random.id("att"), url, name);
  });
}

export function newAttachment(
  id: string,
  url: string,
  filename?: string,
  { size, contentType }: { size?: number; contentType?: string } = {},
): StoredAttachment {
  const name = filename ?? decodeName(url.split(/[?#]/)[0]!.split("/").pop() || "attachment");
  const type = contentType ?? mimeType(name);
  const attachment: StoredAttachment = {
    id,
    url,
    filename: name,
    size: size ?? 1000 + ((url.length * 977) % 90_000),
    type,
  };
  return type.startsWith("image/") ? { ...attachment, width: 800, height: 600 } : attachment;
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

const MIME_TYPES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  pdf: "application/pdf",
  txt: "text/plain",
  csv: "text/csv",
  json: "application/json",
};

function mimeType(filename: string): string {
  return MIME_TYPES[filename.split(".").pop()?.toLowerCase() ?? ""] ?? "application/octet-stream";
}

function invalidAttachment() {
  return apiError(422, "INVALID_ATTACHMENT_OBJECT", "Invalid attachment object");
}
