/** Has the kernel end this process with its parent, also where both are stuck; elsewhere than on Linux nothing does. */
import { dlopen } from "bun:ffi";

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

export function dieWithParent(): void {
  if (process.platform !== "linux") return;
  try {
    const { symbols } = dlopen("libc.so.6", { prctl: { args: ["i32", "u64"], returns: "i32" } });
    symbols.prctl(PR_SET_PDEATHSIG, SIGKILL);
  } catch {
    // Another C library: the parent's end is noticed by the channel to it.
  }
}
