/**
 * Buffers the client's whole body, so that the upstream request is sent at once, and does not depend on a slow client.
 *
 * The bodies of a process share a budget of bytes. Most of it is reserved for keys that the source has accepted for a
 * connected base: all others, among them keys for bases that no account has connected, share the rest.
 */
import { type BodyFailure, IncomingBody, SharedBudget } from "../../core/http";
import type { OwnAnswer } from "./own-answers";

const MB = 1024 * 1024;
/** An upload of 5 MB is nearly 7 MB in base64; ten records of the largest cells are below 10 MB. */
const MAX_BODY_BYTES = 16 * MB;

/** The bytes of all bodies that a process buffers. */
export function bodyBudgets() {
  return {
    /** Of keys that the source has accepted for a connected base. */
    proven: new SharedBudget<"key" | "base" | "account">({
      most: 192 * MB,
      mostPer: { key: 32 * MB, base: 48 * MB, account: 64 * MB, network: 48 * MB },
    }),
    /** An upload of the largest size must be possible. */
    unproven: new SharedBudget<"key" | "base">({
      most: 64 * MB,
      mostPer: { key: MAX_BODY_BYTES, base: 32 * MB, network: MAX_BODY_BYTES },
    }),
  };
}

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
   * Reads it from `budget`, or returns what it was when it was read before.
   *
   * @param ownersOf called if there is a body
   * @returns the body; undefined for a request without one; or the reason why it cannot be used
   */
  read<Kind extends string>(
    budget: SharedBudget<Kind>,
    ownersOf: () => Record<Kind | "network", string>,
  ): Promise<ReadBody> {
    this.#reading ??= hasBody(this.#request) ? this.#read(budget, ownersOf()) : NONE;
    return this.#reading;
  }

  async #read<Kind extends string>(
    budget: SharedBudget<Kind>,
    owners: Record<Kind | "network", string>,
  ): Promise<ReadBody> {
    this.#incoming = new IncomingBody(
      this.#request,
      budget.open(owners, { giveWay: () => this.#giveWay() }),
      {
        mostBytes: MAX_BODY_BYTES,
      },
    );
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
