/**
 * Keepalive and reconnect options for drivers' connections to a Postgres server.
 *
 * Both ends must notice a dead connection. With the kernels' defaults we would wait for an answer for a quarter of an
 * hour, and the server would keep the locks of a transaction whose client is gone for two hours.
 */
import type net from "node:net";
import { liveSocket } from "../net";

const FIRST_SECONDS = 0.03;
/** A database that is back must be used again at once: the driver's own pauses grow to 20 s. */
const MAX_SECONDS = 1;

/**
 * Connection settings that make the server's kernel notice our end's silence as soon as we notice the server's. The
 * last, in ms, also ends a connection on which we receive nothing for this long: our process is then frozen.
 */
export const WATCHED_BY_SERVER = {
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 1,
  tcp_keepalives_count: 10,
  tcp_user_timeout: 15_000,
};

/** Options for postgres.js. */
export function postgresOptions() {
  return { backoff: reconnectPause, keep_alive: null, socket: socketFor() };
}

/** The parts of the parsed options of postgres.js that say where to connect. */
interface Target {
  /** Several hosts are tried in turn. */
  host: string[];
  port: number[];
  /** The path of a Unix socket. */
  path: string | false;
}

/**
 * Creates the sockets of one pool. The driver gets a socket that is still connecting: its first write waits for the
 * connection, and a failed attempt is reported as with the driver's own sockets.
 */
function socketFor(): (target: Target) => net.Socket {
  let next = 0;
  return ({ host: hosts, port: ports, path }) => {
    const socket = liveSocket();
    if (path) return socket.connect(path);
    const [host, port] = [hosts[next % hosts.length]!, ports[next % ports.length]!];
    next += 1;
    // The driver reads these for the certificate's expected name and for its error messages.
    return Object.assign(socket, { host, port }).connect(port, host);
  };
}

/**
 * Seconds until the next attempt after this many consecutive failures; jittered, so that clients do not reconnect at
 * once.
 */
function reconnectPause(failures: number): number {
  return Math.min(FIRST_SECONDS * 2 ** Math.min(failures, 10), MAX_SECONDS) * (0.5 + Math.random() / 2);
}
