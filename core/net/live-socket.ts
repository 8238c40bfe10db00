/**
 * Sockets that notice when the other end is gone without a word: its machine is lost, or a router forgot about them.
 *
 * Without this a statement that was sent into the void waits for as long as the kernel tries, a quarter of an hour.
 * What counts is whether the other machine takes note of what comes, never how long its answer is in coming: a
 * statement may run for hours. A time-out of the kernel's own (TCP_USER_TIMEOUT) would also end connections whose
 * server, busy with one statement, has no room for the next ones; hence the looks from here.
 */
import net from "node:net";
import { countUnanswered } from "./tcp-info";

/** A connection that waits and has nothing to send asks after the other end, every second from then on. */
const KEEP_ALIVE_AFTER_MS = 5000;
const CHECK_EVERY_MS = 2000;
/**
 * Looks in a row that find no answer, until the connection is given up. In looks, not in time, so that a process
 * that was frozen itself draws no conclusion from that. A network that is back within this is not noticed.
 */
const CHECKS_UNTIL_LOST = 6;

/** Looks without an answer, of every socket that is not closed. */
const watched = new Map<net.Socket, number>();
let timer: ReturnType<typeof setInterval> | undefined;

/** A socket, to be connected. It ends with the error ETIMEDOUT some 15 s after the other end has fallen silent. */
export function liveSocket(): net.Socket {
  const socket = new net.Socket();
  socket.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
  watched.set(socket, 0);
  timer ??= setInterval(checkAll, CHECK_EVERY_MS).unref();
  return socket;
}

/** How many sockets are looked at. */
export function countWatched(): number {
  return watched.size;
}

// No event tells of an end here: whoever puts TLS over a socket takes all listeners off it.
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

/** Undefined for as long as it is not open. */
function descriptorOf(socket: net.Socket): number | undefined {
  const { _handle: handle } = socket as { _handle?: { fd?: number } | null };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}

function silence(): Error {
  return Object.assign(new Error("the other end does not answer any more"), { code: "ETIMEDOUT" });
}
