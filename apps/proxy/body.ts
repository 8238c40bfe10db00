/**
 * The client's body, whole: what is sent upstream is sent at once, and does not hang on a slow client.
 *
 * All bodies that a process holds count in one budget of bytes, of which clients whose key is not accepted have a small
 * part. A body is not read before its budget is taken: until then its client is held back by TCP, not by our memory.
 */
import type { OwnAnswer } from "./own-answers";

/** An upload of 5 MB is near 7 MB in base64; ten records of the largest cells are below 10 MB. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;
const BUDGET_BYTES = 256 * 1024 * 1024;
/** The part that unproven clients may take together. */
const UNPROVEN_BYTES = 64 * 1024 * 1024;

/** Bytes of bodies in hand, of a process. */
export class BodyBudget {
  readonly #most: number;
  readonly #mostUnproven: number;
  #held = 0;
  #unproven = 0;

  constructor(most = BUDGET_BYTES, mostUnproven = UNPROVEN_BYTES) {
    this.#most = most;
    this.#mostUnproven = mostUnproven;
  }

  get held(): number {
    return this.#held;
  }

  /** A part of the budget that grows as it is needed, and is given back at the end of its scope. */
  open(isProven: boolean): BodyShare {
    let taken = 0;
    return {
      take: (bytes) => {
        const isTooMuch =
          this.#held + bytes > this.#most || (!isProven && this.#unproven + bytes > this.#mostUnproven);
        if (isTooMuch) return false;
        this.#add(bytes, isProven);
        taken += bytes;
        return true;
      },
      [Symbol.dispose]: () => {
        this.#add(-taken, isProven);
        taken = 0;
      },
    };
  }

  #add(bytes: number, isProven: boolean): void {
    this.#held += bytes;
    if (!isProven) this.#unproven += bytes;
  }
}

export interface BodyShare extends Disposable {
  /** @returns false where there is no room for so many bytes more */
  take(bytes: number): boolean;
}

/** @returns undefined for a request without a body; why there is none of use */
export async function readBody(
  request: Request,
  share: BodyShare,
): Promise<Uint8Array<ArrayBuffer> | undefined | OwnAnswer> {
  if (!hasBody(request)) return undefined;
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > MAX_BODY_BYTES) return "PROXY_BODY_TOO_LARGE";
  if (declared <= MAX_BODY_BYTES && !share.take(declared)) return "PROXY_BUSY";
  try {
    if (declared <= MAX_BODY_BYTES) return new Uint8Array(await request.arrayBuffer());
    return await readCounting(request.body!, share);
  } catch {
    return "PROXY_BODY_BROKEN";
  }
}

export function hasBody({ body, method }: Request): boolean {
  return body !== null && method !== "GET" && method !== "HEAD";
}

/**
 * Does the request have a body that the listener has dropped? Bun gives the body of a GET or HEAD to no handler, so it could
 * not be forwarded.
 */
export function hasLostBody({ body, headers }: Request): boolean {
  if (body !== null) return false;
  return Number(headers.get("content-length") ?? 0) > 0 || headers.has("transfer-encoding");
}

async function readCounting(
  body: ReadableStream<Uint8Array>,
  share: BodyShare,
): Promise<Uint8Array<ArrayBuffer> | OwnAnswer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return "PROXY_BODY_TOO_LARGE";
    if (!share.take(chunk.length)) return "PROXY_BUSY";
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
