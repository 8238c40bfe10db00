/**
 * Sets the priorities of processes. In production the attacker, the customers' own servers, the source and the canary
 * have their own machines; here they share the service's. Attackers therefore run only while a core is idle: in the
 * kernel's idle class, which yields at once, unlike a low priority (with which a task still keeps its core for a slice
 * of 3 ms or more). The source and the canary have priority: neither is measured.
 *
 * The server of the replicas has one core, as docs/operations.md recommends for one that shares a machine with the
 * service. The service and its servers keep the class and the priority that the command was started with.
 */
import { readdirSync } from "node:fs";
import { availableParallelism, getPriority, setPriority } from "node:os";
import { putFirst } from "../support/priority";

const LOWEST = 19;
/** Matches the name of Linux's idle class in the output of `chrt --pid`. */
const IDLE = /SCHED_IDLE/;

/** The values with which this process was started. */
const own = { priority: getPriority(), isIdle: IDLE.test(run("chrt", "--pid", String(process.pid))) };

/** Processes of others that the service waits for. No effect if this one was started in the idle class itself. */
export function goFirst(pids: number[]): void {
  if (!own.isIdle) for (const pid of pids) putFirst(pid);
}

/** Like `REPLICAS_CPUS` of compose.yaml: leaves a core to the rest of the service. */
export function keepToLastCore(pids: number[]): void {
  if (availableParallelism() > 1) for (const pid of pids) pin(pid, String(availableParallelism() - 1));
}

/**
 * Restricts this process, all its threads and its future children to the last core and the idle class; and these
 * processes to the class.
 */
export function stepAside(others: number[]): void {
  keepToLastCore([process.pid]);
  for (const pid of [process.pid, ...others]) {
    run("chrt", "--all-tasks", "--idle", "--pid", "0", String(pid));
    renice(pid, LOWEST);
  }
}

/** For processes of the service: restarted ones have this process's class. Only root may raise it again. */
export function equalToOthers(pids: number[]): void {
  for (const pid of pids) {
    if (priorityOf(pid) !== LOWEST) continue;
    if (!own.isIdle) run("chrt", "--all-tasks", "--other", "--pid", "0", String(pid));
    renice(pid, own.priority);
    pin(pid, `0-${availableParallelism() - 1}`);
  }
}

function pin(pid: number, cores: string): void {
  run("taskset", "--all-tasks", "--pid", "--cpu-list", cores, String(pid));
}

/** On Linux, each thread has its own priority. */
function renice(pid: number, priority: number): void {
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
  } catch {
    // It has ended, or its priority cannot be raised: no change.
  }
}

function priorityOf(pid: number): number | undefined {
  try {
    return getPriority(pid);
  } catch {
    return undefined;
  }
}

/** Linux only: no effect if the program does not exist. @returns its output */
function run(program: string, ...words: string[]): string {
  if (Bun.which(program) === null) return "";
  return Bun.spawnSync([program, ...words], { stdout: "pipe", stderr: "ignore" }).stdout.toString();
}
