/**
 * Free ports on loopback for listeners that cannot use port 0 themselves, or that must come back on the same port after a restart.
 *
 * They are not among the ports that the kernel gives to clients and to listeners on port 0: hundreds of these are opened
 * between the choice of a port and its use, or while its process restarts, and one of them would keep the port for minutes.
 */
import { readFileSync } from "node:fs";
import { isPortFree } from "../../apps/up/free-port";

const FIRST_PORT = 10_000;
/** Of the kernel's own range: Linux' default, where the kernel does not say. */
const FIRST_EPHEMERAL_PORT = 32_768;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (firstEphemeralPort() - FIRST_PORT));
    if (await isPortFree(port, "127.0.0.1")) return port;
  }
}

function firstEphemeralPort(): number {
  try {
    const [first] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s+/);
    return Math.max(Number(first), FIRST_PORT + 1000);
  } catch {
    return FIRST_EPHEMERAL_PORT;
  }
}
