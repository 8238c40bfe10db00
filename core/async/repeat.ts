/** Runs work periodically, and at once on request, but never concurrently with itself. */

/** @param failed is told why `work` has thrown: it is repeated all the same */
export function repeat(ms: number, work: () => Promise<unknown>, failed: (error: unknown) => void) {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let isStopped = false;
  const run = () => {
    running = work()
      .catch(failed)
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
    async now(): Promise<void> {
      if (isStopped) return;
      if (!running) return run();
      next ??= running.then(() => {
        next = undefined;
        return isStopped ? undefined : run();
      });
      return next;
    },
    /** Starts no more work. The promise is that of the work that runs, if any does. */
    async stop(): Promise<void> {
      isStopped = true;
      clearInterval(timer);
      await running;
    },
  };
}
