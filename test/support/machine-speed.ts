/** How slow this machine is at what tests do most: they start processes, databases and browsers, which take new memory. */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const PAGE_BYTES = 4096;
const PAGES = 4096;
/** The time for a new page of memory on a slow machine, µs. It was 20 where tests exceeded their times. */
const SLOW_PAGE_US = 5;
/** Where the kernel counts the time of all processors, by kind, since it was started. */
const PROCESSOR_TIMES = "/proc/stat";
const STOLEN = 7;

/** Returns whether new memory is slow. Takes a few milliseconds, on a slow machine a tenth of a second. */
export function isSlowMachine(): boolean {
  return newPageMicros() > SLOW_PAGE_US;
}

/** Describes the machine in one line, for the log of a run: times in it mean little without. */
export function describeMachine(): string {
  const stolen = existsSync(PROCESSOR_TIMES) ? stolenShare(readFileSync(PROCESSOR_TIMES, "utf8")) : 0;
  return `machine: ${availableParallelism()} processors, ${newPageMicros().toFixed(1)} µs for a new page of memory, ${Math.round(stolen * 100)} % of the time stolen`;
}

function newPageMicros(): number {
  const memory = new Uint8Array(PAGES * PAGE_BYTES);
  const from = performance.now();
  for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = 1;
  return ((performance.now() - from) * 1000) / PAGES;
}

/** Returns the share of the time that the hypervisor gave to others while this machine had work. */
function stolenShare(stat: string): number {
  const [first = ""] = stat.split("\n");
  const times = first.split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return all ? (times[STOLEN] ?? 0) / all : 0;
}
