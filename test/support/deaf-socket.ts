/**
 * Makes sockets unreachable, as if the network lost every packet: the kernel drops what arrives before it is
 * acknowledged. The sender is told nothing, which a proxy cannot simulate by not reading. Linux only.
 */
import { dlopen, ptr } from "bun:ffi";
import type net from "node:net";

export const CAN_DEAFEN = process.platform === "linux";

const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
/** `struct sock_filter` of linux/filter.h: BPF_RET of 0 bytes, which keeps nothing of any packet. */
const KEEP_NOTHING = new Uint8Array([0x06, 0, 0, 0, 0, 0, 0, 0]);
/** `struct sock_fprog`: the number of instructions, and their address. */
const PROGRAM_BYTES = 16;

/** @throws Error for a socket that is not open, and on systems without socket filters */
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
