/**
 * In production, the source is another machine, so the load of this one must not delay it; otherwise arrivals would be
 * recorded later than they happened. Only root may raise a process's priority.
 */
import { constants, setPriority } from "node:os";

/**
 * Gives a process priority over all others on this machine: real time, if `chrt` exists.
 *
 * @param rank of several such processes, those with a higher rank go first; those with the same one take turns of 100 ms
 * @returns whether it succeeded
 */
export function putFirst(pid: number, rank = 1): boolean {
  try {
    if (
      Bun.which("chrt") &&
      Bun.spawnSync(["chrt", "--all-tasks", "--rr", "--pid", String(rank), String(pid)]).success
    )
      return true;
    setPriority(pid, constants.priority.PRIORITY_HIGHEST);
    return true;
  } catch {
    return false;
  }
}
