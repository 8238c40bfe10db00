/**
 * Sockets that nothing reaches any more, as if the network swallowed it: what comes is thrown away by the kernel
 * before it is acknowledged. Whoever sends is told nothing, which no proxy can feign by just not reading. Linux only.
 */
import { dlopen, ptr } from "bun:ffi";
import type net from "node:net";

export const CAN_DEAFEN = process.platform === "linux";

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
/** `struct sock_filter` of linux/filter.h: BPF_RET of 0 bytes, that is, keep nothing of any packet. */
const KEEP_NOTHING = new Uint8Array([0x06, 0, 0, 0, 0, 0, 0, 0]);
/** `struct sock_fprog`: how many of them, and where. */
const PROGRAM_BYTES = 16;

/** @throws Error for a socket that is not open, and where there is no such thing */
export function blackholeSocket(socket: net.Socket): void {
  const { _handle: handle } = socket as { _handle?: { fd?: number } | null };
  const { symbols, close } = dlopen("libc.so.6", {
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  });
  try {
    const program = new BigUint64Array([1n, BigInt(ptr(KEEP_NOTHING))]);
    const failed = symbols.setsockopt(handle?.fd ?? -1, SOL_SOCKET, SO_ATTACH_FILTER, program, PROGRAM_BYTES);
    if (failed) throw new Error("this socket cannot be deafened");
  } finally {
    close();
  }
}
