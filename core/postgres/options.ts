/**
 * How a driver keeps up its connections to a Postgres server: what notices that one is dead, and when the next is tried.
 *
 * Either end has to notice. We would wait for an answer, and the server would keep the locks of a transaction whose
 * owner is gone, for as long as their kernels' defaults say: a quarter of an hour, and two hours.
 */
import type net from "node:net";
import { liveSocket } from "../net";

const FIRST_SECONDS = 0.03;
/** A database that is back is to be used again at once: the driver's own pauses grow to 20 s. */
const MAX_SECONDS = 1;

/**
 * Settings of a connection that have the server's kernel notice our end's silence as soon as we notice the server's.
 * The last, in ms, also ends a connection on which we take in nothing for so long: our process is frozen then.
 */
export const WATCHED_BY_SERVER = {
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 1,
  tcp_keepalives_count: 10,
  tcp_user_timeout: 15_000,
};

/** For postgres.js: part of its options. */
export function postgresOptions() {
  return { backoff: reconnectPause, keep_alive: null, socket: socketFor() };
}

/** Of the options of postgres.js, as it has parsed them, what says where to. */
interface Target {
  /** Several are tried in turn. */
  host: string[];
  port: number[];
  /** Of a Unix socket. */
  path: string | false;
}

/**
 * Sockets for one pool. The driver is handed one that is on its way: it writes at once, which waits until there is a
 * connection, and hears of an attempt that failed in the way it knows.
 */
function socketFor(): (target: Target) => net.Socket {
  let next = 0;
  return ({ host: hosts, port: ports, path }) => {
    const socket = liveSocket();
    if (path) return socket.connect(path);
    const [host, port] = [hosts[next % hosts.length]!, ports[next % ports.length]!];
    next += 1;
    // The driver looks there for the name that a certificate has to be for, and for what to say in errors.
    return Object.assign(socket, { host, port }).connect(port, host);
  };
}

/** Seconds until the next try after so many that failed in a row; jittered, so that not all come at once. */
function reconnectPause(failures: number): number {
  return Math.min(FIRST_SECONDS * 2 ** Math.min(failures, 10), MAX_SECONDS) * (0.5 + Math.random() / 2);
}
