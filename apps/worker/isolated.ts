/**
 * A child process of a worker: holds leases of the bases that the worker suspects of crashing processes, on the
 * worker's request. It ends with its worker, however that ends.
 */
import type { Config } from "../../core/config";
import { dieWithParent } from "../../core/die-with-parent";
import { asBasetideError, BasetideError, type ErrorCode } from "../../core/errors";
import { CallCounter, createRateLimiter } from "../../core/limiter";
import { asControlError, isConnectionError } from "../../core/postgres";
import { createContext, endAtFaults } from "../../core/process";
import { type BaseCaches, holdLease, type SyncContext } from "../../core/sync/lease";
import { createSyncContext } from "./sync-context";

const caches: BaseCaches = new Map();
/** By base id: `stop` aborts when the lease must end, `kill` its requests, too. */
const leases = new Map<string, { stop: AbortController; kill: AbortController }>();
let ctx: SyncContext | undefined;

const send = (message: FromChild) => void process.send?.(message);

async function lease(baseId: string): Promise<void> {
  const [stop, kill] = [new AbortController(), new AbortController()];
  leases.set(baseId, { stop, kill });
  try {
    const next = await holdLease(ctx!, baseId, caches, {
      stop: stop.signal,
      kill: kill.signal,
      isTrial: true,
    });
    send({ type: "ended", baseId, next });
  } catch (error) {
    const { code, message } = isConnectionError(error) ? asControlError(error) : asBasetideError(error);
    send({ type: "failed", baseId, code, message });
  } finally {
    if (leases.get(baseId)?.stop === stop) leases.delete(baseId);
  }
}

function obey(message: ToChild): void {
  if (message.type === "start") {
    const context = createContext(message.config, "worker");
    endAtFaults(context);
    const calls = new CallCounter(context);
    ctx = createSyncContext(context, createRateLimiter(context, { calls }), calls);
    send({ type: "ready" });
  } else if (message.type === "lease") void lease(message.baseId);
  else if (message.type === "ping") send({ type: "pong", rssBytes: process.memoryUsage.rss() });
  else leases.get(message.baseId)?.[message.type].abort(new BasetideError("sync_stopped"));
}

// Works even while this process is frozen and cannot receive the disconnection.
dieWithParent();

// A terminal's signals reach the whole process group; this process ends when its worker disconnects.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.on("message", obey);
process.on("disconnect", () => {
  void (ctx?.callCounter.flush() ?? Promise.resolve()).catch(() => {}).then(() => process.exit(0));
});

/** A message of the worker. */
export type ToChild =
  | { type: "start"; config: Config }
  | { type: "lease"; baseId: string }
  | { type: "stop" | "kill"; baseId: string }
  | { type: "ping" };

/** A message to the worker. */
export type FromChild =
  | { type: "ready" }
  /** `next`: as `holdLease` returns it. */
  | { type: "ended"; baseId: string; next: number | null }
  | { type: "failed"; baseId: string; code: ErrorCode; message: string }
  | { type: "pong"; rssBytes: number };
