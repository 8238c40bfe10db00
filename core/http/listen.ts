/** Opens a port for an app, in one way for all processes. */
import { BasetideError, errorCodes } from "../errors";

/** Longest an ending process waits for answers that are under way, in ms. */
const DRAIN_MS = 10_000;

export interface Listener {
  port: number;
  /** Takes no new connections, and waits for the answers that are under way. */
  stop(): Promise<void>;
}

export interface ListenOptions {
  /** 0: any free one. */
  port: number;
  /** The variable to set another port with, for the error. */
  portVariable: string;
  /** Seconds that a connection may be silent. */
  idleTimeout?: number;
  /** Longest request body, in bytes. */
  maxBodyBytes?: number;
  /** Answers for an app that failed, or whose answer broke off before its first byte; `internal` unless given. */
  answerFault?: (error: Error) => Response;
}

const DEFAULT_BODY_BYTES = 1_000_000;
const DEFAULT_IDLE_SECONDS = 60;

/** @throws BasetideError `port_taken` */
export function listen(
  app: { fetch(request: Request, server: Bun.Server<undefined>): Response | Promise<Response> },
  options: ListenOptions,
): Listener {
  const { port, portVariable } = options;
  try {
    const server = Bun.serve({
      port,
      fetch: (request, server) => app.fetch(request, server),
      idleTimeout: options.idleTimeout ?? DEFAULT_IDLE_SECONDS,
      maxRequestBodySize: options.maxBodyBytes ?? DEFAULT_BODY_BYTES,
      // Bun's own answer to a fault is a page that shows paths and source.
      development: false,
      // Without `development` Bun shares a port that is taken.
      reusePort: false,
      error: options.answerFault ?? internalFault,
    });
    return {
      port: server.port ?? port,
      async stop() {
        const cutOff = setTimeout(() => void server.stop(true), DRAIN_MS);
        await server.stop();
        clearTimeout(cutOff);
      },
    };
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE")) throw cause;
    throw new BasetideError(
      "port_taken",
      `Port ${port} is in use by another program. Stop it, or set ${portVariable} to another port.`,
      { cause, details: { port } },
    );
  }
}

function internalFault(): Response {
  return Response.json({ error: { code: "internal", message: errorCodes.internal } }, { status: 500 });
}
