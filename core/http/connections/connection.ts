/**
 * One established connection, used for one request at a time.
 *
 * H2. A request is written once. Not over Bun's `fetch`, which sends a GET, PUT or DELETE again by itself when a kept
 *     connection breaks before the answer: the source counts both, the rate limiter knows of one.
 */
import { offAbort, onAbort } from "../../async";
import { AnswerParser } from "./answer-parser";
import { AnswerReader, type HttpAnswer } from "./answer-reader";
import { StreamedAnswer } from "./answer-stream";
import type { OpenedSocket } from "./dial";
import { requestHead } from "./request-head";

/** A body up to this size is written together with its head, bytes. */
const MOST_JOINED = 64 * 1024;

/** Headers, or a map of them by name in lower case. */
export interface WireHeaders {
  forEach(each: (value: string, name: string) => void): void;
}

export interface WireRequest {
  method: string;
  /** Path and query, sent byte for byte. */
  path: string;
  headers: WireHeaders;
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
  /** @throws if the answer is not valid */
  push(bytes: Buffer): void;
  /** The source has ended the connection. @returns whether that completes the answer */
  end(): boolean;
  /** The connection has failed, or the answer is not valid. */
  fail(error: unknown): void;
}

interface ConnectionOwner {
  /** An answer was read to its end: the next request may be sent. */
  onRest(): void;
  /** The connection serves no further request. */
  onClose(): void;
  /** It had been closed while it was idle. */
  onStale(): void;
  now(): number;
}

export class Connection {
  readonly openedAt: number;
  /** Start of the idle time, ms on the clock. */
  idleSince: number;
  /** The source closes the connection after this idle time, ms, if it announces one. */
  sourceKeepsMs = Infinity;
  readonly #socket: OpenedSocket["socket"];
  readonly #host: string;
  readonly #owner: ConnectionOwner;
  #exchange: RunningExchange | undefined;
  /** Whether the running exchange is of a whole answer. */
  #isWhole = false;
  #isOpen = true;
  #isListening = false;
  /** The header of that name in the last answer. */
  #keepAlive: string | undefined;

  constructor(host: string, { socket }: OpenedSocket, owner: ConnectionOwner) {
    this.#host = host;
    this.#socket = socket;
    this.#owner = owner;
    this.openedAt = this.idleSince = owner.now();
    const leave = (error?: unknown) => {
      this.#endExchange(error instanceof Error ? error : undefined);
      if (!this.#isOpen) return;
      this.#isOpen = false;
      owner.onClose();
    };
    this.#bypassStream(socket);
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

  /**
   * Reads the bytes of a whole answer directly, without the socket's stream: they are never paused, so the stream buffers
   * none of them. In a profile, it was a third of the time from the runtime's event to the end of an answer. If the runtime
   * did not call `push`, they would come by the stream's event, as those of other answers do.
   */
  #bypassStream(socket: OpenedSocket["socket"]): void {
    const push = socket.push.bind(socket);
    socket.push = (bytes, encoding) => {
      if (!this.#isWhole || bytes === null) return push(bytes, encoding);
      this.#onData(bytes);
      return true;
    };
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
    try {
      exchange.push(bytes);
    } catch (error) {
      exchange.fail(error);
    }
  };

  #endExchange(error: Error | undefined): void {
    const exchange = this.#exchange;
    if (exchange && (error || !exchange.end())) exchange.fail(error ?? reset());
  }

  close(): void {
    this.#isOpen = false;
    this.#socket.destroy();
  }

  /**
   * Writes the request at once, and returns its answer as soon as its head has arrived. The caller must receive the
   * body, discard it, or destroy the answer.
   *
   * @param hasRested the connection was idle, so the source may have closed it
   * @param signal aborts the request, and later the body
   * @param timeoutMs longest time to the head of the answer; unlimited unless given
   * @param onSent gets what breaks the request off before its answer has begun
   * @throws StaleConnection, AnswerTimeout, InvalidAnswer, TypeError for a request that cannot be written, or the
   *   connection's error
   */
  send(
    request: WireRequest,
    signal: AbortSignal,
    hasRested: boolean,
    timeoutMs?: number,
    onSent?: (breakOff: () => void) => void,
  ): Promise<StreamedAnswer> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(this.#stale());
      let answer: StreamedAnswer | undefined;
      let isPaused = false;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const leave = () => {
        this.#exchange = undefined;
        clearTimeout(timer);
        signal.removeEventListener("abort", breakOff);
      };
      const fail = (error: unknown) => {
        leave();
        this.#socket.destroy();
        if (answer) answer.finish({ error });
        else reject(this.#failureOf(error, hasRested && !parser.hasBegun));
      };
      const breakOff = () => fail(new Error("the connection was closed"));
      const line = {
        pause: () => {
          isPaused = true;
          this.#socket.pause();
        },
        resume: () => {
          isPaused = false;
          this.#socket.resume();
        },
        destroy: () => {
          leave();
          this.#socket.destroy();
        },
      };
      const parser = new AnswerParser(
        {
          head: (head) => {
            clearTimeout(timer);
            answer = new StreamedAnswer(head, line);
            this.#readKeepAlive(head.headers);
            resolve(answer);
          },
          body: (piece) => answer!.push(piece),
          end: () => {
            if (isPaused) line.resume();
            leave();
            answer!.finish({});
          },
        },
        request.method === "HEAD",
      );
      if (signal.aborted) return breakOff();
      let head: Buffer;
      try {
        head = requestHead(request, this.#host);
      } catch (error) {
        return fail(error);
      }
      if (timeoutMs !== undefined) timer = setTimeout(() => fail(new AnswerTimeout()), timeoutMs).unref();
      signal.addEventListener("abort", breakOff);
      this.#begin({
        push: (bytes) => {
          parser.push(bytes);
          // Bytes that follow the answer are read before the connection may be used again.
          if (answer && this.#exchange === undefined) this.#settle(parser.keepsAlive);
        },
        end: () => {
          const isComplete = parser.end();
          if (isComplete) this.#settle(false);
          return isComplete;
        },
        fail,
      });
      const { body } = request;
      if (body && body.length <= MOST_JOINED) this.#socket.write(Buffer.concat([head, body]));
      else {
        this.#socket.write(head);
        if (body) this.#socket.write(body);
      }
      onSent?.(breakOff);
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
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(this.#stale());
      const reader = new AnswerReader(request.mostBytes);
      const leave = () => {
        this.#exchange = undefined;
        this.#isWhole = false;
        clearTimeout(timer);
        offAbort(signal, breakOff);
      };
      const fail = (error: unknown) => {
        leave();
        this.#socket.destroy();
        reject(this.#failureOf(error, hasRested && !reader.hasBegun));
      };
      const breakOff = () => fail(new Error("the connection was closed"));
      const timer = setTimeout(() => fail(new AnswerTimeout()), request.timeoutMs).unref();
      if (signal.aborted) return breakOff();
      const finish = () => {
        const { answer } = reader;
        if (!answer) return;
        leave();
        this.#readKeepAlive(answer.headers);
        this.#settle(reader.keepsAlive);
        resolve(answer);
      };
      onAbort(signal, breakOff);
      this.#isWhole = true;
      this.#begin({
        push: (bytes) => {
          reader.push(bytes);
          finish();
        },
        end: () => {
          const isComplete = reader.close();
          finish();
          return isComplete;
        },
        fail,
      });
      this.#socket.write(this.#textOf(request));
    });
  }

  #begin(exchange: RunningExchange): void {
    this.#exchange = exchange;
    this.#socket.ref();
    this.#listen();
  }

  #readKeepAlive(headers: ReadonlyMap<string, string>): void {
    const announced = headers.get("keep-alive");
    if (announced === undefined || announced === this.#keepAlive) return;
    this.#keepAlive = announced;
    const keep = /timeout=(\d+)/.exec(announced);
    if (keep) this.sourceKeepsMs = Number(keep[1]) * 1000;
  }

  /** An answer is complete. If its request has not been written to its end, the source did not want the rest. */
  #settle(keepsAlive: boolean): void {
    if (keepsAlive && this.#socket.writableLength === 0) this.#rested();
    else this.#socket.destroy();
  }

  #rested(): void {
    if (!this.isOpen) return;
    this.idleSince = this.#owner.now();
    this.#owner.onRest();
  }

  #failureOf(error: unknown, mayBeStale: boolean): unknown {
    return mayBeStale && isBroken(error) ? this.#stale() : error;
  }

  #stale(): StaleConnection {
    this.#owner.onStale();
    return new StaleConnection();
  }

  #textOf({ method, path, head, body }: WholeRequest): string {
    const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${head}${length}\r\n${body ?? ""}`;
  }
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
