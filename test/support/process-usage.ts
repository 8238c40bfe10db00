/** Reads CPU and memory of other processes from /proc: Linux only. */
import { readdirSync, readFileSync } from "node:fs";

/** The unit of `/proc/<pid>/stat`: Linux counts in hundredths of a second, independent of its clock. */
const TICKS_PER_SECOND = 100;

/** CPU seconds of the process, of its children, and of children that have ended. */
export function cpuSeconds(pid: number): number {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => stat(child)?.parent === pid);
  const own = stat(pid);
  return [own, ...children.map(stat)].reduce((sum, one) => sum + (one?.cpu ?? 0), 0) + (own?.ended ?? 0);
}

/** CPU seconds of the process's running threads, exact to nanoseconds. */
export function exactCpuSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((id) => Number(read(`/proc/${pid}/task/${id}/schedstat`).split(" ")[0]));
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9;
}

/** Resident memory of the process alone, bytes; 0 for one that has ended, but still has an entry. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

/** The most that it has had. */
export function peakResidentBytes(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

function statusBytes(pid: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, "m");
  const [, kilobytes = 0] = line.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

/** The parent of `pid`: for a Postgres backend, the server. */
export function parentOf(pid: number): number {
  return stat(pid)!.parent;
}

/** Private memory of each child of `pid`, bytes. */
export function childrenPrivateBytes(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && stat(Number(name))?.parent === pid)
    .flatMap((name) => {
      const rollup = read(`/proc/${name}/smaps_rollup`);
      const kilobytes = [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].map((match) => Number(match[1]));
      return kilobytes.length > 0 ? [kilobytes.reduce((sum, one) => sum + one, 0) * 1024] : [];
    });
}

export interface ProcessTimes {
  parent: number;
  /** CPU seconds of the process itself. */
  cpu: number;
  /** CPU seconds of its children that have ended. */
  ended: number;
}

/** @returns undefined if the process no longer exists */
export function processTimes(pid: number): ProcessTimes | undefined {
  return stat(pid);
}

function stat(pid: number): ProcessTimes | undefined {
  // The name, in brackets, may hold spaces.
  const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
  if (fields.length < 15) return undefined;
  const seconds = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / TICKS_PER_SECOND;
  return { parent: Number(fields[1]), cpu: seconds(11), ended: seconds(13) };
}

/** Returns an empty text if the process has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
