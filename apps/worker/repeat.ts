/** Runs work periodically, and at once on request, but never concurrently with itself. */
import type { Logger } from "../../core/log";

/** @param failed the log's message if `work` throws: it is repeated all the same */
export function repeat(ms: number, log: Logger, failed: string, work: () => Promise<unknown>) {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const run = () => {
    running = work()
      .catch((error: unknown) => log.warn({ error }, failed))
      .then(() => {
        running = undefined;
      });
    return running;
  };
  const timer = setInterval(() => {
    if (!running) void run();
  }, ms);
  return {
    /** Runs the work now, or once more if it is running. Never fails. */
    now(): Promise<void> {
      if (!running) return run();
      next ??= running.then(() => {
        next = undefined;
        return run();
      });
      return next;
    },
    stop: () => clearInterval(timer),
  };
}
