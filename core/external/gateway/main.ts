/**
 * The gateway: the only process that communicates with customers' database servers, on behalf of its parent process.
 *
 * It knows no secret of the service except the passwords of those servers, and passes on only messages that it has
 * checked. Its parent kills it when it is late or too large. A hostile server can do no damage beyond it.
 */
import { rmSync } from "node:fs";
import net from "node:net";
import { dieWithParent } from "../../die-with-parent";
import { HELD_BYTES } from "../limits";
import type { Ping, Report } from "../messages";
import { Violation } from "./fault";
import { GatewaySession } from "./session";

const CHECK_EVERY_MS = 1000;

const [socketPath, handPath] = process.argv.slice(2);
const sessions = new Set<GatewaySession>();
/** The connection being processed: the parent reads it if processing kills this process. */
const inHand = new Uint32Array(Bun.mmap(handPath!).buffer, 0, 1);

function report(what: Report): void {
  if (process.connected) process.send!(what);
}

const hooks = {
  working(id: number, work: () => void) {
    inHand[0] = id;
    work();
    inHand[0] = 0;
    cutLargest();
  },
  failed(id: number, fault: unknown) {
    inHand[0] = 0;
    if (fault instanceof Violation) report({ type: "violation", id, kind: fault.kind });
  },
};

/** The total memory is bounded, too: the connection that uses most of it is closed. */
function cutLargest(): void {
  let held = 0;
  for (const session of sessions) held += session.held;
  if (held > HELD_BYTES) largest()?.fail(new Violation("size", "too much data at once"));
}

function largest(): GatewaySession | undefined {
  return [...sessions].sort((a, b) => b.held - a.held)[0];
}

dieWithParent();
process.on("disconnect", () => process.exit(0));
process.on("message", ({ beat }: Ping) => report({ type: "pong", beat, largest: largest()?.id ?? 0 }));
// The parent ends this process; a terminal's signal is for the parent.
process.on("SIGINT", () => {}).on("SIGTERM", () => {});
setInterval(() => {
  const now = performance.now();
  for (const session of sessions) session.checkTime(now);
}, CHECK_EVERY_MS);

const server = net.createServer((driver) => {
  const session = new GatewaySession(driver, hooks);
  sessions.add(session);
  void session.run().finally(() => sessions.delete(session));
});
server.listen(socketPath!, () => report({ type: "ready" }));
process.on("exit", () => rmSync(socketPath!, { force: true }));
