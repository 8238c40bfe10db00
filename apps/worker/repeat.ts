/** Work that is done again and again, and at once when asked for, but never twice at the same time. */
import type { Logger } from "../../core/log";

export interface Repeated {
  /** Does it now, or once more when it is being done. Never fails. */
  now(): Promise<void>;
  stop(): void;
}

/** @param failed the log's message when `work` throws: it is done again all the same */
export function repeat(ms: number, log: Logger, failed: string, work: () => Promise<unknown>): Repeated {
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
    now() {
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
