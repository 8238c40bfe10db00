/** What the heap of a worker process holds, asked from outside: on SIGUSR2 it collects garbage, and prints a line. */
import { heapStats } from "bun:jsc";
import { until } from "../support/poll";
import type { Program } from "../support/program";

const MARK = "heap of the worker: ";
/** A heap of some gigabytes is collected by then. */
const COLLECTED_MS = 60_000;

export interface HeapReport {
  heapBytes: number;
  /** The same with the free cells of the heap's blocks. */
  capacityBytes: number;
  /** Resident memory of the process after the collection. */
  residentBytes: number;
  /** Number of objects by class. */
  objects: Record<string, number>;
}

/** For the worker: prints a report at each signal. */
export function reportHeapOnSignal(): void {
  process.on("SIGUSR2", () => {
    Bun.gc(true);
    const { heapSize, heapCapacity, objectTypeCounts } = heapStats();
    const report: HeapReport = {
      heapBytes: heapSize,
      capacityBytes: heapCapacity,
      residentBytes: process.memoryUsage.rss(),
      objects: objectTypeCounts,
    };
    console.log(MARK + JSON.stringify(report));
  });
}

/** Asks a worker that prints reports. */
export async function heapOf(worker: Program): Promise<HeapReport> {
  const reports = () => worker.output().split(MARK).slice(1);
  const before = reports().length;
  worker.kill("SIGUSR2");
  const report = await until(() => reports()[before]?.includes("\n") && reports()[before], {
    what: "the heap is printed",
    timeoutMs: COLLECTED_MS,
  });
  return JSON.parse(report.split("\n")[0]!) as HeapReport;
}
