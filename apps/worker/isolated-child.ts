/** Controls a child process of the worker: runs leases in it, and detects its death, whatever the cause. */
import { totalmem } from "node:os";
import type { Context } from "../../core/context";
import { BasetideError, type ErrorCode } from "../../core/errors";
import type { LeaseSignals } from "../../core/sync/lease";
import { MAX_FAILURE_PAUSE_MS } from "../../core/sync/pacing";
import type { FromChild, ToChild } from "./isolated";

const PING_MS = 2000;
/** A child that does not answer for this long counts as frozen, ms. */
const FROZEN_AFTER_MS = 20_000;
/** A child's share of the available memory: beyond it the system might kill any process, this worker first. */
const MEMORY_SHARE = 0.5;
/** Time for a child that is told to end to count its calls and close its connections, ms. */
const END_MS = 3000;

type Outcome =
  | { type: "ended"; next: number | null }
  | { type: "failed"; code: ErrorCode; message: string }
  /** The child died with this many bases in it; `restMs`: if this was the only one. */
  | { type: "crashed"; company: number; restMs: number };

export interface Child {
  readonly pid: number;
  lease(baseId: string, signals: LeaseSignals): Promise<Outcome>;
  /** Ends the child, whatever its state. */
  end(): void;
}

interface Watcher {
  /** The child has ended, for any reason: it accepts no more leases. */
  exited(child: Child): void;
  /** The child died while it held leases of these bases. @returns how long the base rests if it was the only one, ms */
  crashed(baseIds: string[]): Promise<number | null>;
}

export function startChild(
  { config, log }: Pick<Context, "config" | "log">,
  script: string,
  watcher: Watcher,
): Child {
  const leases = new Map<string, (outcome: Outcome) => void>();
  const ready = Promise.withResolvers<boolean>();
  let isReady = false;
  let isOver = false;
  let heardAt = performance.now();
  let tickedAt = performance.now();
  const process_ = Bun.spawn([process.execPath, script], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc(message: FromChild) {
      heardAt = performance.now();
      if (message.type === "ready") {
        isReady = true;
        ready.resolve(true);
      } else if (message.type === "pong") watchMemory(message.rssBytes);
      else leases.get(message.baseId)?.(message);
    },
    onExit: (_, code, signal) => void exited(code, signal),
  });
  const { pid } = process_;
  const say = (message: ToChild) => {
    try {
      process_.send(message);
    } catch (error) {
      // The child is dying; its exit event handles the rest.
      log.debug({ pid, error }, "message to a child process failed");
    }
  };
  const mostBytes = MEMORY_SHARE * Math.min(totalmem(), process.constrainedMemory() || Infinity);

  function watchMemory(rssBytes: number): void {
    if (rssBytes <= mostBytes) return;
    log.error({ pid, rssBytes, bases: [...leases.keys()] }, "child process uses too much memory");
    process_.kill("SIGKILL");
  }

  const watch = setInterval(() => {
    const now = performance.now();
    // Messages missed while this process was itself frozen say nothing about the child.
    if (now - tickedAt > 2 * PING_MS) heardAt = now;
    tickedAt = now;
    if (now - heardAt > FROZEN_AFTER_MS) {
      log.error({ pid, bases: [...leases.keys()] }, "child process is frozen");
      process_.kill("SIGKILL");
    } else say({ type: "ping" });
  }, PING_MS);

  async function exited(code: number | null, signal: number | string | null): Promise<void> {
    clearInterval(watch);
    const wasReady = isReady;
    isReady = false;
    ready.resolve(false);
    watcher.exited(child);
    const baseIds = [...leases.keys()];
    if (isOver || baseIds.length === 0) return;
    if (wasReady) log.error({ pid, code, signal, bases: baseIds }, "child process died");
    else log.error({ pid, code, signal }, "child process did not start");
    const restMs = wasReady
      ? await watcher.crashed(baseIds).catch((error: unknown) => {
          log.warn({ error }, "recording the crash of a child process failed");
          return null;
        })
      : null;
    const outcome: Outcome = wasReady
      ? { type: "crashed", company: baseIds.length, restMs: restMs ?? MAX_FAILURE_PAUSE_MS }
      : { type: "failed", code: "internal", message: "The child process did not start" };
    for (const baseId of baseIds) leases.get(baseId)?.(outcome);
  }

  say({ type: "start", config });
  const child: Child = {
    pid,
    async lease(baseId, { stop, kill }) {
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      leases.set(baseId, resolve);
      const stopIt = () => say({ type: "stop", baseId });
      const killIt = () => say({ type: "kill", baseId });
      try {
        if (await ready.promise) {
          say({ type: "lease", baseId });
          if (stop.aborted) stopIt();
          if (kill.aborted) killIt();
          stop.addEventListener("abort", stopIt);
          kill.addEventListener("abort", killIt);
        } else if (isOver) throw new BasetideError("sync_stopped");
        return await promise;
      } finally {
        stop.removeEventListener("abort", stopIt);
        kill.removeEventListener("abort", killIt);
        leases.delete(baseId);
      }
    },
    end() {
      isOver = true;
      clearInterval(watch);
      process_.disconnect();
      const late = setTimeout(() => process_.kill("SIGKILL"), END_MS);
      void process_.exited.then(() => clearTimeout(late));
    },
  };
  return child;
}
