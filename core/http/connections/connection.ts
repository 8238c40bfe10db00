/**
 * One established connection, used for one request at a time.
 *
 * H2. A request is written once. Over node:http and not Bun's `fetch`, which sends a GET, PUT or DELETE again by itself
 *     when a kept connection breaks before the answer: the source counts both, the rate limiter knows of one.
 */
import http from "node:http";
import type { Duplex } from "node:stream";
import { AnswerReader, AnswerTooLarge, type HttpAnswer } from "./answer-reader";
import type { OpenedSocket } from "./dial";

export interface WireRequest {
  method: string;
  /** Path and query, sent byte for byte. */
  path: string;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | undefined;
}

/** A request whose whole answer is read. */
export interface WholeRequest {
  method: string;
  /** Path and query, encoded. */
  path: string;
  /** The header lines except `Host` and `Content-Length`, each ending in CRLF. */
  head: string;
  body: string | undefined;
  /** The largest body of the answer, bytes. */
  mostBytes: number;
  /** From now to the end of the answer, ms. */
  timeoutMs: number;
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

/** The answer did not arrive in time. */
export class AnswerTimeout extends Error {}

/** An exchange that is running: gets what arrives. */
interface RunningExchange {
  reader: AnswerReader;
  /** performance.now() */
  sentAt: number;
  /** Called after each arrival. */
  onRead(): void;
  onFailure(error: unknown): void;
}

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
  /** @param ms from sending a request to the head of its answer */
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
  readonly #onRest: () => void;
  #exchange: RunningExchange | undefined;
  #isOpen = true;
  /** This side ends the connection, or the source has announced that it will. */
  #isEnding = false;
  #isListening = false;
  /** node:http has used the socket, and keeps its own state about it. */
  #isStreamed = false;

  constructor(host: string, { socket }: OpenedSocket, owner: ConnectionOwner) {
    const { onRest, onClose, now } = owner;
    this.#host = host;
    this.#owner = owner;
    this.#socket = socket;
    this.openedAt = this.idleSince = now();
    this.#onRest = () => {
      if (!this.isOpen) return;
      this.idleSince = now();
      onRest();
    };
    this.#agent = new OneSocket(socket, this.#onRest);
    const leave = (error?: unknown) => {
      this.#endExchange(error instanceof Error ? error : undefined);
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
    this.#listen();
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#socket.on("data", this.#onData);
  }

  readonly #onData = (bytes: Buffer) => {
    const exchange = this.#exchange;
    if (!exchange) {
      this.#socket.destroy();
      return;
    }
    const { reader, sentAt } = exchange;
    if (!reader.hasBegun) this.#owner.onAnswer(performance.now() - sentAt);
    try {
      reader.push(bytes);
      exchange.onRead();
    } catch (error) {
      this.#isEnding = true;
      exchange.onFailure(error);
    }
  };

  #endExchange(error: Error | undefined): void {
    const exchange = this.#exchange;
    if (!exchange) return;
    if (!error && exchange.reader.end()) exchange.onRead();
    else exchange.onFailure(error ?? reset());
  }

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
      this.#isStreamed = true;
      this.#isListening = false;
      this.#socket.off("data", this.#onData);
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
        reject(isBroken(error) && hasRested ? new StaleConnection() : error);
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

  /**
   * Writes the request at once, and returns its answer when it has been read to its end.
   *
   * @param hasRested the connection was idle, so the source may have closed it
   * @param signal aborts the request
   * @throws StaleConnection, AnswerTimeout, InvalidAnswer, AnswerTooLarge, or the connection's error; the connection is then closed
   */
  exchange(request: WholeRequest, signal: AbortSignal, hasRested: boolean): Promise<HttpAnswer> {
    if (this.#isStreamed) return this.#exchangeByStream(request, signal, hasRested);
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(new StaleConnection());
      const reader = new AnswerReader(request.mostBytes);
      const fail = (error: unknown) => {
        this.#exchange = undefined;
        clearTimeout(timer);
        signal.removeEventListener("abort", breakOff);
        this.#socket.destroy();
        reject(hasRested && !reader.hasBegun && isBroken(error) ? new StaleConnection() : error);
      };
      const endWith = (error: Error) => {
        this.#isEnding = true;
        fail(error);
      };
      const breakOff = () => endWith(new Error("the connection was closed"));
      const timer = setTimeout(() => endWith(new AnswerTimeout()), Math.max(0, request.timeoutMs));
      if (signal.aborted) return breakOff();
      signal.addEventListener("abort", breakOff);
      this.#exchange = {
        reader,
        sentAt: performance.now(),
        onFailure: fail,
        onRead: () => {
          const { answer } = reader;
          if (!answer) return;
          this.#exchange = undefined;
          clearTimeout(timer);
          signal.removeEventListener("abort", breakOff);
          const keep = /timeout=(\d+)/.exec(answer.headers.get("keep-alive") ?? "");
          if (keep) this.sourceKeepsMs = Number(keep[1]) * 1000;
          if (reader.keepsAlive) this.#onRest();
          else {
            this.#isEnding = true;
            this.#socket.destroy();
          }
          resolve(answer);
        },
      };
      this.#socket.ref();
      this.#listen();
      this.#socket.write(this.#textOf(request));
    });
  }

  /** The same over node:http, for a connection that it has used: only in a process that sends requests of both kinds. */
  async #exchangeByStream(
    { method, path, head, body, mostBytes, timeoutMs }: WholeRequest,
    signal: AbortSignal,
    hasRested: boolean,
  ): Promise<HttpAnswer> {
    const over = new AbortController();
    let isLate = false;
    const abort = () => over.abort();
    const timer = setTimeout(
      () => {
        isLate = true;
        abort();
      },
      Math.max(0, timeoutMs),
    );
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    try {
      const bytes = body === undefined ? undefined : new TextEncoder().encode(body);
      const asked = { method, path, headers: headersOf(head), body: bytes };
      const answer = await this.send(asked, over.signal, hasRested);
      const pieces: Uint8Array[] = [];
      let length = 0;
      for await (const piece of answer as AsyncIterable<Uint8Array>) {
        length += piece.length;
        if (length > mostBytes) throw new AnswerTooLarge();
        pieces.push(piece);
      }
      const headers = new Map(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]));
      return { status: answer.statusCode ?? 0, headers, body: Buffer.concat(pieces) };
    } catch (error) {
      abort();
      throw isLate ? new AnswerTimeout() : error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }

  #textOf({ method, path, head, body }: WholeRequest): string {
    const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${head}${length}\r\n${body ?? ""}`;
  }
}

function headersOf(head: string): Headers {
  const lines = head.split("\r\n").filter((line) => line !== "");
  return new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
}

function isBroken(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ECONNRESET" || code === "EPIPE";
}

/** The connection ended before the answer did. */
function reset(): Error {
  return Object.assign(new Error("the connection was closed before the answer had arrived"), {
    code: "ECONNRESET",
  });
}
