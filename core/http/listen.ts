/**
 * Opens a port for an app, the same way in all processes: the gate, the client's address, the headers, the drain; and
 * names the host that reaches it.
 */
import { BasetideError, errorCodes } from "../errors";
import type { Logger } from "../log";
import { recordServer } from "./answer-time";
import { recordAddress } from "./client-address";
import { withOwnHeaders } from "./own-headers";
import { malformedRequest } from "./request-gate";
import type { SharedBodies } from "./shared-bodies";

/** Longest wait for running requests when a process stops, ms. */
const DRAIN_MS = 10_000;

export interface Listener {
  port: number;
  /** Stops accepting connections, and waits for running requests. */
  stop(): Promise<void>;
}

export interface ListenOptions {
  /** 0: any free port. */
  port: number;
  /** The variable that sets the port, for the error. */
  portVariable: string;
  /** Address to bind to; all interfaces unless given. */
  host?: string | undefined;
  /** Seconds that a connection may be silent, unless `allowLongAnswer` extends it. */
  idleTimeout?: number;
  /** Longest request body, in bytes. */
  maxBodyBytes?: number;
  /** Limits the memory for bodies and the wait for them; absent: the app does. */
  bodies?: SharedBodies;
  /** Longest wait for running requests at the stop, ms; 0 aborts them. */
  drainMs?: number;
  /** Answers if the app fails, or its answer breaks off before its first byte; `internal` unless given. */
  answerFault?: (error: Error) => Response;
  /** Answers a request that the gate refuses; `malformed_request` unless given. */
  answerMalformed?: (message: string) => Response;
  /** The public URL: with https, browsers are told to use TLS only. */
  publicUrl?: string | undefined;
  /** Further headers of our own answers; false: none at all, for a simulated third-party service. */
  ownHeaders?: Record<string, string> | false;
  log?: Logger;
  /**
   * Returns the client's address if connections arrive through another part of this process; the connection's own
   * unless given.
   */
  addressOf?: ((peer: Bun.SocketAddress) => string | undefined) | undefined;
  /** Certificate and key, PEM: the port uses TLS. */
  tls?: { certificate: string; key: string } | undefined;
}

interface App {
  /** @param peer the connection's other end; null if it is closed */
  fetch(
    request: Request,
    server: Bun.Server<undefined>,
    peer: Bun.SocketAddress | null,
  ): Response | Promise<Response>;
}

const DEFAULT_BODY_BYTES = 1_000_000;
/** Longer than load balancers keep a connection (60 s): they would send a request while it is being closed. */
const DEFAULT_IDLE_SECONDS = 75;

/** @throws BasetideError `port_taken` */
export function listen(app: App, options: ListenOptions): Listener {
  const { port, portVariable, host, drainMs = DRAIN_MS } = options;
  const state = { isStopping: false };
  try {
    const server = Bun.serve({
      port,
      ...(host === undefined ? {} : { hostname: host }),
      ...(options.tls ? { tls: { cert: options.tls.certificate, key: options.tls.key } } : {}),
      fetch: handler(app, options, state),
      idleTimeout: options.idleTimeout ?? DEFAULT_IDLE_SECONDS,
      // Otherwise the app enforces the limit and explains it; Bun would only close the connection.
      maxRequestBodySize: options.bodies
        ? Number.MAX_SAFE_INTEGER
        : (options.maxBodyBytes ?? DEFAULT_BODY_BYTES),
      // Bun's own error page shows paths and source code.
      development: false,
      // Without `development` Bun shares a port that is already in use.
      reusePort: false,
      error: (error) => own((options.answerFault ?? internalFault)(error), options),
    });
    return {
      port: server.port ?? port,
      async stop() {
        state.isStopping = true;
        if (drainMs === 0) return server.stop(true);
        const cutOff = setTimeout(() => void server.stop(true), drainMs);
        await server.stop();
        clearTimeout(cutOff);
      },
    };
  } catch (cause) {
    throw portError(cause, port, portVariable);
  }
}

/** Returns the error for a port that could not be opened: `port_taken` if it is in use, else `cause` itself. */
export function portError(cause: unknown, port: number, portVariable: string): unknown {
  if (!(cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE")) return cause;
  return new BasetideError(
    "port_taken",
    `Port ${port} is in use by another program. Stop it, or set ${portVariable} to another port.`,
    { cause, details: { port } },
  );
}

function handler(app: App, options: ListenOptions, state: { isStopping: boolean }) {
  const answer = async (request: Request, server: Bun.Server<undefined>): Promise<Response> => {
    const trouble = malformedRequest(request);
    if (trouble !== undefined) {
      options.log?.debug({ method: request.method, detail: trouble }, "request refused");
      return own((options.answerMalformed ?? malformed)(trouble), options);
    }
    const peer = server.requestIP(request);
    recordAddress(request, peer && options.addressOf ? options.addressOf(peer) : peer?.address);
    recordServer(request, server);
    const { bodies, maxBodyBytes = DEFAULT_BODY_BYTES } = options;
    const ask = (received: Request) => app.fetch(received, server, peer);
    return own(await (bodies ? bodies.receive(request, maxBodyBytes, ask) : ask(request)), options);
  };
  return async (request: Request, server: Bun.Server<undefined>): Promise<Response> => {
    const response = await answer(request, server);
    // Bun closes the connection then, but does not say so: Node's agent would send its next request on it.
    if (state.isStopping || asksToClose(request)) response.headers.set("connection", "close");
    return response;
  };
}

function asksToClose(request: Request): boolean {
  const options = request.headers.get("connection")?.toLowerCase().split(",") ?? [];
  return options.some((option) => option.trim() === "close");
}

function own(response: Response, { publicUrl, ownHeaders }: ListenOptions): Response {
  return ownHeaders === false ? response : withOwnHeaders(response, publicUrl, ownHeaders);
}

function malformed(message: string): Response {
  return Response.json({ error: { code: "malformed_request", message } }, { status: 400 });
}

function internalFault(): Response {
  return Response.json({ error: { code: "internal", message: errorCodes.internal } }, { status: 500 });
}

/**
 * Returns the host of a URL that reaches a listener of this machine.
 *
 * @param host the bound address; absent: all interfaces
 * @param loopback the name of this machine
 */
export function reachedAt(host: string | undefined, loopback = "localhost"): string {
  if (host === undefined || host === "0.0.0.0" || host === "::" || host === "127.0.0.1") return loopback;
  return host.includes(":") ? `[${host}]` : host;
}
