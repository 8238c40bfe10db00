/**
 * One established connection, used for one request at a time.
 *
 * H2. A request is written once. Over node:http and not Bun's `fetch`, which sends a GET, PUT or DELETE again by itself
 *     when a kept connection breaks before the answer: the source counts both, the ledger hears of one.
 */
import http from "node:http";
import type { Duplex } from "node:stream";
import type { OpenedSocket } from "./dial";

export interface WireRequest {
  method: string;
  /** Path and query: sent as they are, byte by byte. */
  path: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

/** No connection could be opened: nothing was asked. Its `code` is what node:net or node:tls says. */
export class ConnectFailure extends Error {
  readonly code: string | undefined;

  constructor(cause: unknown) {
    super("the connection could not be opened", { cause });
    this.code = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  }
}

/** A connection that had rested broke before an answer; as a rule the source had closed it before it was asked. */
export class StaleConnection extends Error {}

/** Hands the one socket to node:http, and says when a request is done with it. */
class OneSocket extends http.Agent {
  readonly #socket: Duplex;
  readonly #onFree: () => void;

  constructor(socket: Duplex, onFree: () => void) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#socket = socket;
    this.#onFree = onFree;
  }

  override createConnection(): Duplex {
    return this.#socket;
  }

  override keepSocketAlive(_socket: Duplex): boolean {
    // The agent takes the socket back only after this returns.
    queueMicrotask(this.#onFree);
    return true;
  }
}

export interface ConnectionOwner {
  /** An answer was read to its end: the next request may be sent. */
  onRest(): void;
  /** It serves no request any more. */
  onClose(): void;
  now(): number;
}

export class Connection {
  readonly openedAt: number;
  /** Since when it rests, ms on the clock. */
  idleSince: number;
  /** The source closes it when it has rested for so long, ms, where it says so. */
  sourceKeepsMs = Infinity;
  readonly #socket: OpenedSocket["socket"];
  readonly #agent: OneSocket;
  readonly #host: string;
  #isOpen = true;

  constructor(host: string, { socket }: OpenedSocket, { onRest, onClose, now }: ConnectionOwner) {
    this.#host = host;
    this.#socket = socket;
    this.openedAt = this.idleSince = now();
    this.#agent = new OneSocket(socket, () => {
      if (!this.isOpen) return;
      this.idleSince = now();
      onRest();
    });
    const leave = () => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      onClose();
    };
    // A source that ends its side while the connection rests is answered nothing: it would take a request for lost.
    socket.on("end", leave).on("close", leave).on("error", leave);
  }

  get isOpen(): boolean {
    return this.#isOpen && !this.#socket.destroyed;
  }

  /** While it rests it keeps no process from ending, and what arrives is no answer to anything: it is left. */
  rest(): void {
    this.#socket.unref();
    this.#socket.off("data", this.#closeOnData).on("data", this.#closeOnData);
  }

  readonly #closeOnData = () => this.#socket.destroy();

  close(): void {
    this.#isOpen = false;
    this.#socket.destroy();
  }

  /**
   * Writes the request at once. The body of the answer is to be read, or its stream to be destroyed.
   *
   * @param hasRested it may have been closed by the source before now
   * @param signal breaks off the request, and later the body
   * @throws StaleConnection, or what node:http finds wrong with the way, the request or the answer
   */
  send(
    { method, path, headers, body }: WireRequest,
    signal: AbortSignal,
    hasRested: boolean,
  ): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(new StaleConnection());
      // Before there is a request: one that ends before it is listened to ends the process.
      if (signal.aborted) {
        this.#socket.destroy();
        return reject(new Error("broken off"));
      }
      this.#socket.off("data", this.#closeOnData);
      this.#socket.ref();
      const sent: Record<string, string> = { ...Object.fromEntries(headers), host: this.#host };
      // node:http gives the body of a DELETE no length: the source would take it for a request of its own.
      if (body !== undefined) sent["content-length"] = String(body.length);
      const asking = http.request({ path, method, headers: sent, agent: this.#agent });
      // Its own `signal` option costs some 20 µs more a request. Once the answer is read this does nothing.
      const breakOff = () => {
        asking.destroy();
        reject(new Error("broken off"));
      };
      signal.addEventListener("abort", breakOff);
      let answer: http.IncomingMessage | undefined;
      asking.on("error", (error: NodeJS.ErrnoException) => {
        // A body that goes on until the connection ends would count as whole.
        answer?.destroy(error);
        const isBroken = error.code === "ECONNRESET" || error.code === "EPIPE";
        reject(isBroken && hasRested ? new StaleConnection() : error);
      });
      asking.on("response", (head) => {
        answer = head;
        // Heard by whatever reads the body, or not at all.
        head.on("error", () => {});
        const keep = /timeout=(\d+)/.exec(String(head.headers["keep-alive"] ?? ""));
        if (keep) this.sourceKeepsMs = Number(keep[1]) * 1000;
        const status = head.statusCode ?? 0;
        if (status >= 200 && status <= 599) return resolve(head);
        head.socket.destroy();
        reject(new RangeError(`${status} is no status of an answer`));
      });
      // A source that changes the protocol, or takes CONNECT for more than a word, is left.
      const leave = (_head: unknown, socket: Duplex) => {
        socket.destroy();
        reject(new Error("the source does not go on in HTTP"));
      };
      asking.on("upgrade", leave).on("connect", leave);
      asking.end(body);
    });
  }
}
