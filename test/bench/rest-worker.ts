/** A worker for `rest.ts`. On SIGUSR2 it collects garbage, and prints what its heap holds as one line of JSON. */
import { heapStats } from "bun:jsc";
import { startWorker } from "../../apps/worker/start";
import { runProcess } from "../../core/process";

/** What `rest.ts` reads after HEAP_MARK. */
export interface HeapReport {
  heapBytes: number;
  /** The same with the free cells of the heap's blocks. */
  capacityBytes: number;
  /** Resident memory of the process after the collection. */
  residentBytes: number;
  /** Number of objects by class. */
  objects: Record<string, number>;
}

export const HEAP_MARK = "heap of the worker: ";

if (import.meta.main) {
  process.on("SIGUSR2", () => {
    Bun.gc(true);
    const { heapSize, heapCapacity, objectTypeCounts } = heapStats();
    const report: HeapReport = {
      heapBytes: heapSize,
      capacityBytes: heapCapacity,
      residentBytes: process.memoryUsage.rss(),
      objects: objectTypeCounts,
    };
    console.log(HEAP_MARK + JSON.stringify(report));
  });
  await runProcess("worker", async (ctx, releases) => {
    const worker = await startWorker(ctx);
    releases.defer(() => worker.stop());
  });
}
