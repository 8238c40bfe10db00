/**
 * Who runs before whom. In production the attacker, the customers' own servers, the source and the canary have machines of
 * their own; here they share the service's. So what attacks runs only while a core has nothing else to do: in the kernel's
 * idle class, which gives way at once, as a low priority does not (a task keeps its core for a slice of 3 ms and more
 * even so). And the source and the canary go first: neither is what is measured.
 *
 * The server of the replicas has one core, as docs/operations.md has it for one that shares a machine with the service. The
 * service and its servers keep the class and the priority that the command was started with.
 */
import { readdirSync } from "node:fs";
import { availableParallelism, getPriority, setPriority } from "node:os";
import { putFirst } from "../support/priority";

const LOWEST = 19;
/** Linux's number of the idle class, for `chrt --pid`. */
const IDLE = /SCHED_IDLE/;

/** As this process was started. */
const own = { priority: getPriority(), isIdle: IDLE.test(run("chrt", "--pid", String(process.pid))) };

/** Processes of others that the service waits for. Nothing where this one was started in the idle class itself. */
export function goFirst(pids: number[]): void {
  if (!own.isIdle) for (const pid of pids) putFirst(pid);
}

/** As `REPLICAS_CPUS` of compose.yaml does: customers' SQL leaves the rest of the service a core. */
export function keepToLastCore(pids: number[]): void {
  if (availableParallelism() > 1) for (const pid of pids) pin(pid, String(availableParallelism() - 1));
}

/**
 * Keeps this process, all its threads and what it starts from now on to the last core and the idle class; and these
 * processes to the class.
 */
export function stepAside(others: number[]): void {
  keepToLastCore([process.pid]);
  for (const pid of [process.pid, ...others]) {
    run("chrt", "--all-tasks", "--idle", "--pid", "0", String(pid));
    renice(pid, LOWEST);
  }
}

/** For processes of the service: those that were started again are where this one is. Only root may put them back. */
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

/** Each thread has a priority of its own on Linux. */
function renice(pid: number, priority: number): void {
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
  } catch {
    // It has ended, or may not go back up: as it was.
  }
}

function priorityOf(pid: number): number | undefined {
  try {
    return getPriority(pid);
  } catch {
    return undefined;
  }
}

/** Linux only: nothing where there is no such program. @returns what it said */
function run(program: string, ...words: string[]): string {
  if (Bun.which(program) === null) return "";
  return Bun.spawnSync([program, ...words], { stdout: "pipe", stderr: "ignore" }).stdout.toString();
}
