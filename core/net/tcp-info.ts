/**
 * Reads from the kernel what no driver reports: whether the other machine of a TCP connection still acknowledges
 * packets.
 *
 * Uses Linux' own calls; where they are unavailable, the result is unknown.
 */
import { dlopen } from "bun:ffi";

const LIBRARY = "libc.so.6";
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Their offsets in `struct tcp_info` of linux/tcp.h, a byte each; both return to 0 with the next acknowledgment. */
const RETRANSMITS = 2;
const PROBES = 3;
const BYTES_NEEDED = 4;

const info = new Uint8Array(BYTES_NEEDED);
const size = new Uint32Array(1);
let libc: ReturnType<typeof openLibrary> | undefined;

/**
 * Returns how many transmissions or keepalive probes in a row have not been acknowledged.
 *
 * The other machine's kernel acknowledges: this stays at 0 however long a program there computes, or does not read.
 * @param fd of a TCP socket
 * @returns null if unknown
 */
export function countUnanswered(fd: number): number | null {
  libc ??= openLibrary();
  if (!libc) return null;
  size[0] = BYTES_NEEDED;
  if (libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, size) !== 0) return null;
  return info[RETRANSMITS]! + info[PROBES]!;
}

function openLibrary() {
  if (process.platform !== "linux") return null;
  try {
    return dlopen(LIBRARY, {
      getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
    }).symbols;
  } catch {
    // A Linux with another C library.
    return null;
  }
}
