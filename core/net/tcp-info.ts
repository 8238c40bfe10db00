/**
 * What the kernel knows of a TCP connection and tells no driver: that the machine at the other end has fallen silent.
 *
 * By Linux' own calls; where they cannot be had, nothing is known and nothing is claimed.
 */
import { dlopen } from "bun:ffi";

const LIBRARY = "libc.so.6";
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Where they are in `struct tcp_info` of linux/tcp.h, a byte each; both are 0 again with the next answer. */
const RETRANSMITS = 2;
const PROBES = 3;
const BYTES_NEEDED = 4;

const info = new Uint8Array(BYTES_NEEDED);
const size = new Uint32Array(1);
let libc: ReturnType<typeof openLibrary> | undefined;

/**
 * How many times in a row something was sent and nobody said that it arrived, be it data again or a mere probe.
 * The other machine's kernel says so: this stays at 0 however long a program there thinks, or takes nothing in.
 *
 * @param fd of a TCP socket
 * @returns null where it cannot be told
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
