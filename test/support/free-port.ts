/** A free port on loopback for a test's own listener. Where the listener can take port 0 itself, let it. */
import { findFreePort } from "../../apps/up/free-port";

export function freePort(): Promise<number> {
  return findFreePort(0, "127.0.0.1");
}
