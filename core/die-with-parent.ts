/** Makes the kernel end this process with its parent, even if both hang; on Linux only. */
import { dlopen } from "bun:ffi";

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

export function dieWithParent(): void {
  if (process.platform !== "linux") return;
  try {
    const { symbols } = dlopen("libc.so.6", { prctl: { args: ["i32", "u64"], returns: "i32" } });
    symbols.prctl(PR_SET_PDEATHSIG, SIGKILL);
  } catch {
    // Another C library: this process notices the parent's end by the channel to it.
  }
}
