/** Returns a free port on loopback for a test's own listener. If the listener can use port 0 itself, prefer that. */
import { findFreePort } from "../../apps/up/free-port";

export function freePort(): Promise<number> {
  return findFreePort(0, "127.0.0.1");
}
