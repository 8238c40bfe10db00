/**
 * Waves of faults on a running service: several at once, in different parts of it, and after each wave quiet. Does
 * everybody work again, how soon, and does what was promised hold?
 *
 * What must hold at every moment (I1, I2, I4 to I6) is watched all the time. How soon a fault is over is measured from its
 * end, or from that of the last one that hit the same part. What must hold once it is quiet (I3, and that nothing is
 * left to repair) is checked after each wave, when all of them are over.
 */
import type { Random } from "../../../apps/sandbox/random";
import type { Figures } from "./figures";
import { measure } from "./heal";
import { type Claim, type Part, Parts, type Taken } from "./parts";
import { People } from "./people";
import type { Cluster, Service } from "./service";
import { settle } from "./settle";
import type { Supervised } from "./supervised";
import { type Hit, Timeline } from "./timeline";
import type { WatchedBase } from "./watched-base";

/** Until then everything has to work again, unless a fault says otherwise, ms after its end. */
const BOUND_MS = 60_000;
/** Nothing is in the way of a write that begins this long after a fault's end, ms: see the limits. */
const CALM_AFTER_MS = 6000;
/** Faults of a wave begin within this time, ms. */
const SPREAD_MS = 6000;

/** What a fault did. Times are performance.now(). */
export interface Done {
  brokenAt: number;
  /** When the last of what was taken away was given back. */
  repairedAt: number;
  /** Bases whose worker is no more. */
  orphans?: WatchedBase[];
  /** Servers that came back at `repairedAt`. */
  returned?: readonly Part[];
}

/** A fault as it is drawn: at whom it is aimed. */
export interface Aimed extends Claim {
  /** Until what it broke is well again nothing is expected of that, and no other fault has any use for it. */
  isHeldUntilHealed?: boolean;
  run(taken: Taken): Promise<Done>;
}

export interface Fault {
  name: string;
  /** How often it comes, compared with others. */
  weight: number;
  /** Nothing is in the way of showing writes through the proxies when they are answered, all the same. */
  sparesWrites?: boolean;
  /** Ends well only after this, ms: somebody waits for minutes by design. */
  boundMs?: number;
  /** It goes on, or what it hit needs to heal, for about so long, ms; seconds unless given. */
  lastsMs?: number;
  aim(chaos: Chaos): Aimed;
}

/** What became of one fault of a wave. */
export interface Outcome {
  name: string;
  /** How long it went on, and how long it took from then until everything that it hit was well; ms. */
  ranMs: number;
  healedMs: number;
  isDisturbed: boolean;
  wrong: string[];
}

export class Chaos {
  readonly people: People;
  readonly #parts: Parts;
  readonly #timeline = new Timeline();

  constructor(
    readonly service: Service,
    readonly random: Random,
    readonly figures: Figures,
  ) {
    const endpoints = service.of("proxy").map((proxy) => `http://127.0.0.1:${proxy.port}/api.airtable.com`);
    this.#parts = new Parts(service.processes, random);
    this.people = new People({
      bases: service.bases,
      apiKey: service.source.key,
      endpoints,
      random,
      isCalm: (from) => !this.#timeline.wasHit(from, CALM_AFTER_MS, (hit) => !hit.sparesWrites),
    });
  }

  /**
   * Runs the faults, as many at once as are in different parts, and checks everything.
   *
   * @param report told of each when what it hit is well again
   * @returns what was found to be wrong
   */
  async suffer(faults: readonly Fault[], report: (outcome: Outcome) => void = () => {}): Promise<string[]> {
    const { service, figures, people } = this;
    const outcomes = await Promise.all(
      faults.map(async (fault, index) => {
        // One alone begins at once.
        if (index > 0) await Bun.sleep(this.random.int(0, SPREAD_MS));
        const outcome = await this.#sufferOne(fault);
        figures.suffered(outcome);
        report(outcome);
        return outcome;
      }),
    );
    const wrong = outcomes.flatMap((outcome) => outcome.wrong);
    const healedAt = performance.now();
    try {
      wrong.push(...(await settle(this, Math.max(BOUND_MS, ...faults.map(({ boundMs = 0 }) => boundMs)))));
    } catch (error) {
      wrong.push(messageOf(error));
    }
    figures.note("quiet after a wave, until everything is checked", performance.now() - healedAt);
    people.resume();
    wrong.push(...service.takeViolations());
    figures.found(wrong);
    return wrong;
  }

  /** The bases that a process holds the leases of, as their replicas have noted, if they can be asked. */
  async heldBy(process: Supervised): Promise<WatchedBase[]> {
    await this.service.readAudits().catch(() => {});
    const id = `${process.name} (${process.pid})`;
    return this.service.bases.filter((base) => base.audit.holder === id);
  }

  /** A server of replicas, or, once in a while, all of them. */
  pickClusters(): readonly Cluster[] {
    const { clusters } = this.service;
    return this.random.chance(0.3) ? clusters : [this.random.pick(clusters)];
  }

  async #sufferOne(fault: Fault): Promise<Outcome> {
    const { name, sparesWrites = false, boundMs = BOUND_MS } = fault;
    const aimed = fault.aim(this);
    const taken = await this.#parts.take(aimed);
    const from = performance.now();
    const hit = this.#timeline.add({
      from,
      to: Number.POSITIVE_INFINITY,
      bases: basesHit(this.service, aimed),
      processes: processesHit(this.service, aimed),
      sparesWrites,
      boundMs,
    });
    let done: Done;
    try {
      done = await aimed.run(taken);
      const { isHeldUntilHealed } = aimed;
      Object.assign(
        hit,
        whatWasHit(done, aimed, taken),
        isHeldUntilHealed && { to: Number.POSITIVE_INFINITY },
      );
    } catch (error) {
      hit.to = performance.now();
      taken.release();
      return { name, ranMs: hit.to - from, healedMs: 0, isDisturbed: true, wrong: [messageOf(error)] };
    }
    if (!aimed.isHeldUntilHealed) taken.release();
    const ranMs = done.repairedAt - done.brokenAt;
    try {
      const healed = await measure(this.service, this.#timeline, this.figures, hit, done);
      return { name, ranMs, healedMs: healed.ms, isDisturbed: healed.isDisturbed, wrong: [] };
    } catch (error) {
      const healedMs = performance.now() - done.repairedAt;
      return { name, ranMs, healedMs, isDisturbed: true, wrong: [messageOf(error)] };
    } finally {
      if (aimed.isHeldUntilHealed) {
        hit.to = performance.now();
        taken.release();
      }
    }
  }
}

/** What may be hit by a fault that is aimed so, as far as is known before. */
function basesHit({ bases }: Service, { breaks = [], role }: Aimed): WatchedBase[] {
  if (breaks.includes("control") || breaks.includes("source") || role === "worker") return [...bases];
  return bases.filter(
    ({ facts, cluster }) =>
      breaks.includes(`base ${facts.mode}`) ||
      breaks.includes(cluster.part) ||
      // Changes are told to the console.
      (role === "console" && facts.mode === "live"),
  );
}

function processesHit({ processes }: Service, { breaks = [], role }: Aimed): Supervised[] {
  return breaks.includes("control") ? [...processes] : processes.filter((process) => process.role === role);
}

/** The same, once it is known: who died has hit what it held, and no other process. */
function whatWasHit(done: Done, aimed: Aimed, taken: Taken): Partial<Hit> {
  const { brokenAt, repairedAt, orphans } = done;
  return {
    from: brokenAt,
    to: repairedAt,
    ...(aimed.role ? { processes: [taken.process] } : {}),
    ...(orphans && !aimed.breaks?.length ? { bases: orphans } : {}),
  };
}

/** Of several errors each: together they have none. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
