/**
 * One established connection, used for one request at a time.
 *
 * H2. A request is written once. Over node:http and not Bun's `fetch`, which sends a GET, PUT or DELETE again by itself
 *     when a kept connection breaks before the answer: the source counts both, the rate limiter knows of one.
 */
import http from "node:http";
import type { Duplex } from "node:stream";
import type { OpenedSocket } from "./dial";

export interface WireRequest {
  method: string;
  /** Path and query, sent byte for byte. */
  path: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

/** No connection could be opened, so no request was sent. Its `code` is that of node:net or node:tls. */
export class ConnectFailure extends Error {
  readonly code: string | undefined;

  constructor(cause: unknown) {
    super("the connection could not be opened", { cause });
    this.code = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  }
}

/** An idle connection broke before an answer; usually the source had closed it before the request was sent. */
export class StaleConnection extends Error {}

/** Gives the single socket to node:http, and reports when a request is done with it. */
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

interface ConnectionOwner {
  /** An answer was read to its end: the next request may be sent. */
  onRest(): void;
  /** @param ms from sending a request to its answer */
  onAnswer(ms: number): void;
  /** The connection serves no further request. @param isBroken neither this side nor the source had announced it */
  onClose(isBroken: boolean): void;
  now(): number;
}

export class Connection {
  readonly openedAt: number;
  /** Start of the idle time, ms on the clock. */
  idleSince: number;
  /** The source closes the connection after this idle time, ms, if it announces one. */
  sourceKeepsMs = Infinity;
  readonly #socket: OpenedSocket["socket"];
  readonly #agent: OneSocket;
  readonly #host: string;
  readonly #owner: ConnectionOwner;
  #isOpen = true;
  /** This side ends the connection, or the source has announced that it will. */
  #isEnding = false;

  constructor(host: string, { socket }: OpenedSocket, owner: ConnectionOwner) {
    const { onRest, onClose, now } = owner;
    this.#host = host;
    this.#owner = owner;
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
      onClose(!this.#isEnding);
    };
    // If the source ends its side while the connection is idle, no request may be sent on it: it would be lost.
    socket.on("end", leave).on("close", leave).on("error", leave);
  }

  get isOpen(): boolean {
    return this.#isOpen && !this.#socket.destroyed;
  }

  /** While idle, it does not keep the process alive; arriving data answers no request, so the connection is closed. */
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
   * Writes the request at once. The caller must read the answer's body, or destroy its stream.
   *
   * @param hasRested the connection was idle, so the source may have closed it
   * @param signal aborts the request, and later the body
   * @throws StaleConnection, or node:http's error about the connection, the request or the answer
   */
  send(
    { method, path, headers, body }: WireRequest,
    signal: AbortSignal,
    hasRested: boolean,
  ): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(new StaleConnection());
      // Checked before the request is created: an aborted request without an error listener would end the process.
      if (signal.aborted) {
        this.#socket.destroy();
        return reject(new Error("the connection was closed"));
      }
      this.#socket.off("data", this.#closeOnData);
      this.#socket.ref();
      const sent: Record<string, string> = { ...Object.fromEntries(headers), host: this.#host };
      // node:http sends the body of a DELETE without a length: the source would parse it as another request.
      if (body !== undefined) sent["content-length"] = String(body.length);
      const asking = http.request({ path, method, headers: sent, agent: this.#agent });
      // Its own `signal` option costs some 20 µs more per request. Once the answer is read this does nothing.
      const breakOff = () => {
        this.#isEnding = true;
        asking.destroy();
        reject(new Error("the connection was closed"));
      };
      signal.addEventListener("abort", breakOff);
      let answer: http.IncomingMessage | undefined;
      const sentAt = performance.now();
      asking.on("error", (error: NodeJS.ErrnoException) => {
        // Without this, a body that ends with the connection would count as complete.
        answer?.destroy(error);
        const isBroken = error.code === "ECONNRESET" || error.code === "EPIPE";
        reject(isBroken && hasRested ? new StaleConnection() : error);
      });
      asking.on("response", (head) => {
        answer = head;
        this.#owner.onAnswer(performance.now() - sentAt);
        // Handled by the reader of the body, if any.
        head.on("error", () => {});
        const keep = /timeout=(\d+)/.exec(String(head.headers["keep-alive"] ?? ""));
        if (keep) this.sourceKeepsMs = Number(keep[1]) * 1000;
        this.#isEnding = head.headers.connection === "close";
        const status = head.statusCode ?? 0;
        if (status >= 200 && status <= 599) return resolve(head);
        this.#isEnding = true;
        head.socket.destroy();
        reject(new RangeError(`${status} is not a valid status of a response`));
      });
      // The connection is closed if the source switches protocols or accepts CONNECT.
      const leave = (_head: unknown, socket: Duplex) => {
        this.#isEnding = true;
        socket.destroy();
        reject(new Error("Airtable switched to another protocol than HTTP"));
      };
      asking.on("upgrade", leave).on("connect", leave);
      asking.end(body);
    });
  }
}
