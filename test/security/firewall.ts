/**
 * Simulates the firewall that docs/operations.md puts in front of the customers' port: it limits new connections per
 * address. Here all addresses are one, so only the attacker's connections pass through it.
 */
import { join } from "node:path";
import { until } from "../support/poll";

/** As in docs/operations.md: new connections of one address. */
export const PER_SECOND = 5;
export const BURST = 20;

export interface Firewall extends AsyncDisposable {
  pid: number;
  /** The same database, through the firewall. */
  before(url: string): string;
}

/** @param url of the server behind it */
export async function startFirewall(url: string): Promise<Firewall> {
  let port = 0;
  const child = Bun.spawn([process.execPath, join(import.meta.dirname, "firewall-main.ts")], {
    env: { ...process.env, FIREWALL_TARGET: new URL(url).port },
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (message) => {
      port = message as number;
    },
  });
  await until(() => port !== 0, { what: "the firewall is up", timeoutMs: 20_000 });
  return {
    pid: child.pid,
    before: (inside) => Object.assign(new URL(inside), { port: String(port) }).href,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
