/** Shared by all faults. */
import type { Chaos, Done } from "../harness/chaos";
import type { Part } from "../harness/parts";
import type { Service } from "../harness/service";
import type { Supervised } from "../harness/supervised";
import type { WatchedBase } from "../harness/watched-base";

export const now = () => performance.now();

/** Kills the process. @param orphans the bases that it had leased; looked up unless given */
export async function killed(chaos: Chaos, victim: Supervised, orphans?: WatchedBase[]): Promise<Done> {
  const bases = orphans ?? (victim.role === "worker" ? await chaos.heldBy(victim) : undefined);
  const ended = victim.kill();
  const brokenAt = now();
  await ended;
  return { brokenAt, repairedAt: brokenAt, ...(bases ? { orphans: bases } : {}) };
}

/** The bases that each worker has leased, by the worker's name. Call it before one of them dies. */
export async function holdings(chaos: Chaos): Promise<Map<string, WatchedBase[]>> {
  const held = new Map<string, WatchedBase[]>();
  for (const worker of chaos.service.of("worker")) held.set(worker.name, await chaos.heldBy(worker));
  return held;
}

/** Everything except processes. */
export function allParts({ clusters }: Service): Part[] {
  return ["control", "source", ...clusters.map(({ part }) => part)];
}
