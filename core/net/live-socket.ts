/**
 * Sockets that notice when the other end disappears without closing: its machine is lost, or a router dropped the
 * connection.
 *
 * Otherwise a statement sent to a dead peer waits for as long as the kernel retries, a quarter of an hour. Only the
 * acknowledgments of the other machine's kernel count, never how long an answer takes: a statement may run for hours.
 * The kernel's own time-out (TCP_USER_TIMEOUT) would also end connections whose server, busy with one statement, has a
 * full receive buffer; hence the checks in this process.
 */
import net from "node:net";
import { countUnanswered } from "./tcp-info";

/** Start of keepalive probes on an idle connection, one every second from then on. */
const KEEP_ALIVE_AFTER_MS = 5000;
const CHECK_EVERY_MS = 2000;
/**
 * Consecutive checks without an acknowledgment until the connection is given up. Counted in checks, not in time, so
 * that a process that was itself frozen draws no conclusion. Outages shorter than this have no effect.
 */
const CHECKS_UNTIL_LOST = 6;

/** Consecutive checks without an acknowledgment, for every open socket. */
const watched = new Map<net.Socket, number>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Returns an unconnected socket. It fails with the error ETIMEDOUT some 15 s after the other end has gone silent. */
export function liveSocket(): net.Socket {
  const socket = new net.Socket();
  socket.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
  watched.set(socket, 0);
  timer ??= setInterval(checkAll, CHECK_EVERY_MS).unref();
  return socket;
}

/** Returns how many sockets are being checked. */
export function countWatched(): number {
  return watched.size;
}

// Does not rely on events: code that puts TLS over a socket removes all its listeners.
function checkAll(): void {
  for (const [socket, checks] of watched) {
    const fd = descriptorOf(socket);
    if (socket.destroyed) watched.delete(socket);
    else if (fd === undefined || !countUnanswered(fd)) watched.set(socket, 0);
    else if (checks + 1 < CHECKS_UNTIL_LOST) watched.set(socket, checks + 1);
    else socket.destroy(silence());
  }
  if (watched.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

/** Undefined while the socket is not open. */
function descriptorOf(socket: net.Socket): number | undefined {
  const { _handle: handle } = socket as { _handle?: { fd?: number } | null };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}

function silence(): Error {
  return Object.assign(new Error("the peer no longer responds"), { code: "ETIMEDOUT" });
}
