/**
 * Where the attacker's own process runs: at the lowest priority and on one core, so that what it does itself is not what
 * slows the canary. In production it has a machine of its own.
 */
import { availableParallelism, setPriority } from "node:os";

const LOWEST = 19;

/** Keeps this process, and what it starts from now on, to the last core. Nothing where there is one only. */
export async function onItsOwnCore(): Promise<void> {
  if (availableParallelism() > 1) await pin(process.pid, String(availableParallelism() - 1));
}

export function stepAside(): void {
  renice(process.pid, LOWEST);
}

export function stepBack(): void {
  renice(process.pid, 0);
}

/** For processes of the service that were started again while this one had stepped aside. */
export function equalToOthers(pids: number[]): void {
  for (const pid of pids) {
    renice(pid, 0);
    void pin(pid, `0-${availableParallelism() - 1}`);
  }
}

/** Linux only. */
async function pin(pid: number, cores: string): Promise<void> {
  if (Bun.which("taskset") === null) return;
  await Bun.spawn(["taskset", "-a", "-p", "-c", cores, String(pid)], {
    stdio: ["ignore", "ignore", "ignore"],
  }).exited;
}

/** Only root may go back up: others stay where they are. */
function renice(pid: number, priority: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // As it was.
  }
}
