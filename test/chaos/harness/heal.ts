/** Measures how soon everything that a fault hit works again: the times that have limits. */
import type { Done } from "./chaos";
import type { Figures } from "./figures";
import type { Service } from "./service";
import type { Supervised } from "./supervised";
import type { Healed, Hit, Timeline } from "./timeline";
import type { WatchedBase } from "./watched-base";

/** Names of the times in the figures. */
export const TIMES = {
  workerLost: "worker lost: its bases sync again",
  controlUsed: "control plane back: used again",
  controlShows: "control plane back: changes show again",
  replicasUsed: "replicas back: used again",
  anyShows: "any fault over: changes of then are shown",
};

/** The name of the same time if another fault disturbed it, and the clock started at that fault's end. */
export function disturbed(name: string): string {
  return `${name} (disturbed)`;
}

/**
 * Waits until everything works again, and records how long each part took.
 *
 * @returns the longest time of the parts that the fault itself hit
 * @throws Error that names what does not work within its limit
 */
export async function measure(
  service: Service,
  timeline: Timeline,
  figures: Figures,
  own: Hit,
  { brokenAt, repairedAt, orphans = [], returned = [] }: Done,
): Promise<Healed> {
  const waits: Promise<Healed & { isOwn: boolean }>[] = [];
  /** Times that another fault disturbed are recorded separately: they mostly measure that fault. */
  const wait = async (
    isOwn: boolean,
    names: string[],
    what: string,
    since: number,
    isInTheWay: (hit: Hit) => boolean,
    healedAt: (since: number) => Promise<number | undefined> | number | undefined,
  ): Promise<Healed & { isOwn: boolean }> => {
    const healed = await timeline.healed({ what, own, since, isInTheWay, healedAt });
    for (const name of names) figures.note(healed.isDisturbed ? disturbed(name) : name, healed.ms);
    return { ...healed, isOwn };
  };
  const hits = (base: WatchedBase) => (hit: Hit) => hit.bases.includes(base);
  const befalls = (process: Supervised) => (hit: Hit) => hit.processes.includes(process);
  for (const base of orphans)
    waits.push(
      wait(true, [TIMES.workerLost], `${base.facts.mode} syncs elsewhere`, brokenAt, hits(base), (since) =>
        base.syncedAfter(since),
      ),
    );
  for (const process of service.processes) {
    const isBack = returned.includes("control");
    waits.push(
      wait(
        own.processes.includes(process),
        isBack ? [TIMES.controlUsed] : [],
        `${process.name} ${isBack ? "uses the control plane" : "is ready"}`,
        repairedAt,
        befalls(process),
        async () => ((await process.isReady()) ? performance.now() : undefined),
      ),
    );
  }
  for (const base of service.bases) {
    if (returned.includes(base.cluster.part))
      waits.push(
        wait(
          true,
          [TIMES.replicasUsed],
          `${base.facts.mode} writes its replica`,
          repairedAt,
          hits(base),
          (since) => firstUse(base, since),
        ),
      );
    const isOwn = own.bases.includes(base);
    const names = [
      ...(isOwn ? [TIMES.anyShows] : []),
      ...(returned.includes("control") ? [TIMES.controlShows] : []),
    ];
    waits.push(
      wait(isOwn, names, `${base.facts.mode} syncs`, repairedAt, hits(base), (since) =>
        base.syncedAfter(since),
      ),
    );
  }
  const results = await Promise.allSettled(waits);
  const late = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  if (late.length > 0) throw new AggregateError(late);
  const all = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const mine = all.filter(({ isOwn }) => isOwn);
  return {
    ms: Math.max(0, ...mine.map(({ ms }) => ms)),
    isDisturbed: mine.some(({ isDisturbed }) => isDisturbed),
  };
}

async function firstUse(base: WatchedBase, since: number): Promise<number | undefined> {
  const [row] = await base.owner<{ at: Date | null }[]>`
    select min(at) as at from chaos.log where at > ${new Date(performance.timeOrigin + since)}`;
  return row?.at ? row.at.getTime() - performance.timeOrigin : undefined;
}
