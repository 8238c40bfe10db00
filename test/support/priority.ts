/**
 * The source is a machine of its own: what else runs on this one must not make it late, or arrivals are noted later than
 * they came. Only root may put a process before others.
 */
import { constants, setPriority } from "node:os";

/** Puts a process before all others of this machine: in real time where there is `chrt`. @returns whether it may */
export function putFirst(pid: number): boolean {
  try {
    if (
      Bun.which("chrt") &&
      Bun.spawnSync(["chrt", "--all-tasks", "--rr", "--pid", "1", String(pid)]).success
    )
      return true;
    setPriority(pid, constants.priority.PRIORITY_HIGHEST);
    return true;
  } catch {
    return false;
  }
}
