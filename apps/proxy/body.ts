/**
 * Buffers the client's whole body, so that the upstream request is sent at once, and does not depend on a slow client.
 *
 * All bodies in a process share one budget of bytes, of which clients with an unproven key may use a small part. A body
 * is not read before it has its budget: until then TCP holds the client back, and no memory is used.
 */
import type { OwnAnswer } from "./own-answers";

/** An upload of 5 MB is nearly 7 MB in base64; ten records of the largest cells are below 10 MB. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
const BUDGET_BYTES = 256 * 1024 * 1024;
/** The part that all unproven clients together may use. */
const UNPROVEN_BYTES = 64 * 1024 * 1024;

/** The bytes of all bodies that a process buffers. */
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

  /** Returns a share of the budget that grows as needed, and is released at the end of its scope. */
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

interface BodyShare extends Disposable {
  /** @returns false if the budget has no room for this many further bytes */
  take(bytes: number): boolean;
}

/** @returns the body; undefined for a request without one; or the reason why it cannot be used */
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

/** The body of a GET or HEAD, which the source ignores, is not forwarded: Bun passes it to no handler. */
export function hasBody({ body, method }: Request): boolean {
  return body !== null && method !== "GET" && method !== "HEAD";
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
