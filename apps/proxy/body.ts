/**
 * Buffers the client's whole body, so that the upstream request is sent at once, and does not depend on a slow client.
 */
import { type BodyFailure, IncomingBody } from "../../core/http";
import { type Budgets, type Owners, openShare } from "./budgets";
import type { OwnAnswer } from "./own-answers";

/** An upload of 5 MB is nearly 7 MB in base64; ten records of the largest cells are below 10 MB. */
export const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

const answerOf: Record<BodyFailure, OwnAnswer> = {
  too_large: "PROXY_BODY_TOO_LARGE",
  full: "PROXY_BUSY",
  late: "PROXY_BODY_LATE",
  broken: "PROXY_BODY_BROKEN",
};

type ReadBody = Uint8Array<ArrayBuffer> | undefined | OwnAnswer;

const NONE = Promise.resolve(undefined);

/** The body of one request, which is read once. */
export class RequestBody implements Disposable {
  readonly #request: Request;
  #incoming: IncomingBody | undefined;
  #reading: Promise<ReadBody> | undefined;
  #gaveWay: AbortController | undefined;
  /** Whether others needed its memory more. */
  hasGivenWay = false;

  constructor(request: Request) {
    this.#request = request;
  }

  /** Aborted when the body gives way. */
  get gaveWay(): AbortSignal {
    this.#gaveWay ??= new AbortController();
    return this.#gaveWay.signal;
  }

  /**
   * Reads it within its owners' part of the budgets, or returns what it was when it was read before.
   *
   * @param ownersOf called if there is a body
   * @returns the body; undefined for a request without one; or the reason why it cannot be used
   */
  read(budgets: Budgets, ownersOf: () => Owners): Promise<ReadBody> {
    this.#reading ??= hasBody(this.#request) ? this.#read(budgets, ownersOf()) : NONE;
    return this.#reading;
  }

  async #read(budgets: Budgets, owners: Owners): Promise<ReadBody> {
    const share = openShare(budgets, owners, () => this.#giveWay());
    this.#incoming = new IncomingBody(this.#request, share, { mostBytes: MAX_REQUEST_BYTES });
    const body = await this.#incoming.whole();
    return typeof body === "string" ? answerOf[body] : body;
  }

  #giveWay(): void {
    this.hasGivenWay = true;
    this.#incoming!.giveWay();
    this.#gaveWay?.abort();
  }

  /** It no longer gives way to others, because its request is about to be sent. */
  keep(): void {
    this.#incoming?.keep();
  }

  [Symbol.dispose](): void {
    this.#incoming?.[Symbol.dispose]();
  }
}

/** The body of a GET or HEAD, which the source ignores, is not forwarded: Bun passes it to no handler. */
export function hasBody({ body, method }: Request): boolean {
  return body !== null && method !== "GET" && method !== "HEAD";
}
