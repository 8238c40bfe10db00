/**
 * Injects waves of faults into a running service: several at once in different parts, and a quiet period after each
 * wave. Checks that everything works again, how soon, and that the invariants hold.
 *
 * What must hold at every moment (I1, I2, I4 to I6) is checked all the time. The recovery time of a fault is measured
 * from its end, or from the end of the last fault that hit the same part. What must hold once it is quiet (I3, and no
 * repair left) is checked after each wave, when all of its faults are over.
 */
import type { Random } from "../../../apps/sandbox/random";
import { isConnectionError } from "../../../core/postgres";
import type { Figures } from "./figures";
import { measure } from "./heal";
import { type Claim, type Part, Parts, type Taken } from "./parts";
import { People } from "./people";
import type { Cluster, Service } from "./service";
import { settle } from "./settle";
import type { Supervised } from "./supervised";
import { type Hit, Timeline } from "./timeline";
import type { WatchedBase } from "./watched-base";

/** Everything must work again by then, unless a fault sets another limit, ms after its end. */
const BOUND_MS = 60_000;
/** A write that begins this long after a fault's end meets no obstacle, ms: see the limits. */
const CALM_AFTER_MS = 6000;
/** The faults of a wave begin within this time, ms. */
const SPREAD_MS = 6000;

/** The effect of a fault. Times are performance.now(). */
export interface Done {
  brokenAt: number;
  /** When the last removed thing was restored. */
  repairedAt: number;
  /** Bases whose worker has died. */
  orphans?: WatchedBase[];
  /** Servers that were restored at `repairedAt`. */
  returned?: readonly Part[];
}

/** Nothing was broken: no process came to the point of the fault in time, or there was nothing to break. */
export class NotReached extends Error {}

/** A fault with its targets. */
export interface Aimed extends Claim {
  /** Until its targets have recovered, nothing is expected of them, and no other fault may use them. */
  isHeldUntilHealed?: boolean;
  run(taken: Taken): Promise<Done>;
}

export interface Fault {
  name: string;
  /** How often it is drawn, relative to others. */
  weight: number;
  /** The proxies can still show writes in SQL when they answer them. */
  sparesWrites?: boolean;
  /** A longer limit for recovery, ms: the design lets something wait for minutes. */
  boundMs?: number;
  /** The approximate duration of the fault, or of its targets' recovery, ms; seconds unless given. */
  lastsMs?: number;
  aim(chaos: Chaos): Aimed;
}

/** The result of one fault of a wave. */
export interface Outcome {
  name: string;
  /** When it broke something. */
  at: Date;
  /** The fault's duration, and the time from its end until all of its targets had recovered; ms. */
  ranMs: number;
  healedMs: number;
  isDisturbed: boolean;
  /** Why the fault did not happen; it counts as none. */
  missed?: string;
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
   * Runs the faults, as many at once as hit different parts, and checks everything.
   *
   * @param report called for each fault when its targets have recovered
   * @returns the violations
   */
  async suffer(faults: readonly Fault[], report: (outcome: Outcome) => void = () => {}): Promise<string[]> {
    const { service, figures, people } = this;
    const outcomes = await Promise.all(
      faults.map(async (fault, index) => {
        // A single fault begins at once.
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

  /** The bases that a process has leased, as recorded in their replicas, if these are reachable. */
  async heldBy(process: Supervised): Promise<WatchedBase[]> {
    await this.service.readAudits().catch(() => {});
    const id = `${process.name} (${process.pid})`;
    return this.service.bases.filter((base) => base.audit.holder === id);
  }

  /** One of the replicas' servers, or, sometimes, all of them. */
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
      return {
        name,
        at: dateOf(from),
        ranMs: hit.to - from,
        healedMs: 0,
        isDisturbed: true,
        ...(isMiss(error) ? { missed: messageOf(error), wrong: [] } : { wrong: [messageOf(error)] }),
      };
    }
    if (!aimed.isHeldUntilHealed) taken.release();
    const ranMs = done.repairedAt - done.brokenAt;
    const at = dateOf(done.brokenAt);
    try {
      const healed = await measure(this.service, this.#timeline, this.figures, hit, done);
      return { name, at, ranMs, healedMs: healed.ms, isDisturbed: healed.isDisturbed, wrong: [] };
    } catch (error) {
      const healedMs = performance.now() - done.repairedAt;
      return { name, at, ranMs, healedMs, isDisturbed: true, wrong: [messageOf(error)] };
    } finally {
      if (aimed.isHeldUntilHealed) {
        hit.to = performance.now();
        taken.release();
      }
    }
  }
}

/**
 * A fault's own connections lead directly to a server, past the service: if one is lost, another fault's effect was in
 * the way of this one, and says nothing about the service.
 */
function isMiss(error: unknown): boolean {
  return error instanceof NotReached || isConnectionError(error);
}

function dateOf(at: number): Date {
  return new Date(performance.timeOrigin + at);
}

/** The bases that such a fault may hit, as far as known in advance. */
function basesHit({ bases }: Service, { breaks = [], role }: Aimed): WatchedBase[] {
  if (breaks.includes("control") || breaks.includes("source") || role === "worker") return [...bases];
  return bases.filter(
    ({ facts, cluster }) =>
      breaks.includes(`base ${facts.mode}`) ||
      breaks.includes(cluster.part) ||
      // The console receives notifications.
      (role === "console" && facts.mode === "live"),
  );
}

function processesHit({ processes }: Service, { breaks = [], role }: Aimed): Supervised[] {
  return breaks.includes("control") ? [...processes] : processes.filter((process) => process.role === role);
}

/** The same, once it is known: a killed process affects the bases that it had leased, and no other process. */
function whatWasHit(done: Done, aimed: Aimed, taken: Taken): Partial<Hit> {
  const { brokenAt, repairedAt, orphans } = done;
  return {
    from: brokenAt,
    to: repairedAt,
    ...(aimed.role ? { processes: [taken.process] } : {}),
    ...(orphans && !aimed.breaks?.length ? { bases: orphans } : {}),
  };
}

/** The messages of all errors: an AggregateError has none of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
