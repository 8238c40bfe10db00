/** How slow this machine is, compared with one on which all tests take a quarter of an hour. */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** As many probes run at once as that machine has processors. */
const AT_ONCE = 2;
/** The time that they take there, ms. */
const REFERENCE_MS = 160;
const PROBES = 3;
/** Tells the threads of a run what its start has measured. */
const VARIABLE = "TEST_SLOWNESS";
/** Where the kernel counts the time of all processors, by kind, since it was started. */
const PROCESSOR_TIMES = "/proc/stat";
const STOLEN = 7;

/** Measures how many times as long this machine takes, at least 1, in half a second. It sees a quota of CPU, too. */
export async function measureSlowness(): Promise<number> {
  const times: number[] = [];
  for (let nth = 0; nth < PROBES; nth++) times.push(await probe());
  const median = times.toSorted((one, other) => one - other)[Math.floor(PROBES / 2)]!;
  const slowness = Math.max(1, median / REFERENCE_MS);
  process.env[VARIABLE] = slowness.toFixed(2);
  return slowness;
}

/** Returns what the run has measured. */
export function slowness(): number {
  return Number(process.env[VARIABLE] ?? 1);
}

/** Describes the machine in one line, for the log of a run: times in it mean little without. */
export function describeMachine(): string {
  const stolen = existsSync(PROCESSOR_TIMES) ? stolenShare(readFileSync(PROCESSOR_TIMES, "utf8")) : 0;
  return `machine: ${availableParallelism()} processors, took ${slowness()} times as long as usual at the start, ${Math.round(100 * stolen)} % of the time stolen`;
}

async function probe(): Promise<number> {
  const from = performance.now();
  const one = () => Bun.spawn([process.execPath, `${import.meta.dirname}/machine-probe.ts`]).exited;
  const codes = await Promise.all(Array.from({ length: AT_ONCE }, one));
  if (codes.some((code) => code !== 0)) throw new Error("the probe of the machine's speed failed");
  return performance.now() - from;
}

/** Returns the share of the time since the start that the hypervisor gave to others while this machine had work. */
function stolenShare(stat: string): number {
  const [first = ""] = stat.split("\n");
  const times = first.split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return all ? (times[STOLEN] ?? 0) / all : 0;
}
