/**
 * One fault after another on a running service, and after each: does everybody work again, how soon, and does what
 * was promised hold?
 */
import type { Sql } from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { compareToSource } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import type { Figures } from "./figures";
import { People } from "./people";
import type { Service } from "./service";
import type { Supervised } from "./supervised";
import type { WatchedBase } from "./watched-base";

/** Until then everything has to work again, unless a fault says otherwise, ms after its end. */
const BOUND_MS = 60_000;
/** Nothing is in the way of a write that begins this long after a fault's end, ms: see the limits. */
const CALM_AFTER_MS = 6000;
/** A feed whose last ping was lost is found out when SQL is compared with the source, which is once a minute, ms. */
const READ_OUT_MS = 120_000;
const POLL_MS = 50;

export type Database = "control" | "replicas";

/** What a fault did. Times are performance.now(). */
export interface Done {
  brokenAt: number;
  /** When the last of what was taken away was given back. */
  mendedAt: number;
  /** Bases whose worker is no more. */
  orphans?: WatchedBase[];
  /** Servers that came back at `mendedAt`. */
  returned?: Database[];
}

export interface Fault {
  name: string;
  /** How often it comes, compared with others. */
  weight: number;
  /** Nothing is in the way of showing writes through the proxies when they are answered, all the same. */
  sparesWrites?: boolean;
  /** Ends well only after this, ms: somebody waits for minutes by design. */
  boundMs?: number;
  run(chaos: Chaos): Promise<Done>;
}

export class Chaos {
  readonly people: People;
  #spares = true;
  #isRunning = false;
  #calmFrom = 0;

  constructor(
    readonly service: Service,
    readonly random: Random,
    readonly figures: Figures,
  ) {
    const endpoints = service.of("proxy").map((proxy) => `http://127.0.0.1:${proxy.port}/api.airtable.com`);
    this.people = new People({
      bases: service.bases,
      apiKey: service.source.key,
      endpoints,
      random,
      isCalm: (from) => this.#spares || (!this.#isRunning && from > this.#calmFrom),
    });
  }

  /** Runs the fault and checks everything. @returns what was found to be wrong */
  async suffer(fault: Fault): Promise<string[]> {
    const from = performance.now();
    this.#spares = fault.sparesWrites === true && this.#spares;
    this.#isRunning = true;
    const wrong: string[] = [];
    try {
      const done = await fault.run(this);
      this.#calmFrom = done.mendedAt + CALM_AFTER_MS;
      this.#isRunning = false;
      await this.#measure(fault, done);
      await this.#settle(fault, done);
    } catch (error) {
      wrong.push(messageOf(error));
    } finally {
      this.#isRunning = false;
      this.#calmFrom = Math.max(this.#calmFrom, from);
      if (performance.now() > this.#calmFrom) this.#spares = true;
      this.people.resume();
    }
    wrong.push(...this.service.takeViolations());
    this.figures.suffered(fault.name, performance.now() - from, wrong.length);
    return wrong;
  }

  /** The bases that a process holds the leases of, as their replicas have noted. */
  async heldBy(process: Supervised): Promise<WatchedBase[]> {
    await this.service.readAudits();
    const id = `${process.name} (${process.pid})`;
    return this.service.bases.filter((base) => base.audit.holder === id);
  }

  /** Recovery times, which the limits are about. */
  async #measure(fault: Fault, { brokenAt, mendedAt, orphans = [], returned = [] }: Done): Promise<void> {
    const { service, figures } = this;
    const boundMs = fault.boundMs ?? BOUND_MS;
    const waits: Promise<void>[] = orphans.map(async (base) => {
      const at = await this.#until(
        () => base.syncedAfter(brokenAt),
        boundMs,
        `${base.facts.mode} syncs elsewhere`,
      );
      figures.note("worker lost: its bases sync again", at - brokenAt);
    });
    if (returned.includes("control")) {
      for (const process of service.processes)
        waits.push(
          this.#until(() => process.isReady(), boundMs, `${process.name} uses the control plane`).then(() =>
            figures.note("control plane back: used again", performance.now() - mendedAt),
          ),
        );
    }
    if (returned.includes("replicas")) {
      const since = new Date(performance.timeOrigin + mendedAt);
      for (const base of service.bases)
        waits.push(
          this.#until(() => firstUse(base, since), boundMs, `${base.facts.mode} writes its replica`).then(
            (at) => figures.note("replicas back: used again", at.getTime() - since.getTime()),
          ),
        );
    }
    for (const base of service.bases)
      waits.push(
        this.#until(() => base.syncedAfter(mendedAt), boundMs, `${base.facts.mode} syncs`).then((at) => {
          figures.note("any fault over: changes of then are shown", at - mendedAt);
          if (returned.includes("control"))
            figures.note("control plane back: changes show again", at - mendedAt);
        }),
      );
    await Promise.all(waits);
    for (const process of service.processes)
      await this.#until(() => process.isReady(), boundMs, `${process.name} is ready`);
  }

  /** I3, and everything that is only known once it is quiet. */
  async #settle(fault: Fault, { mendedAt }: Done): Promise<void> {
    const { service, figures, people } = this;
    const boundMs = fault.boundMs ?? BOUND_MS;
    await people.pause();
    const quietAt = performance.now();
    const equalAt = new Map<string, number>();
    await Promise.all(
      service.bases.map(async (base) => {
        await this.#equal(base, boundMs);
        equalAt.set(base.facts.mode, performance.now());
      }),
    );
    for (const mode of new Set(service.bases.map(({ facts }) => facts.mode)))
      figures.note(`quiet: SQL equals the source (${mode})`, (equalAt.get(mode) ?? 0) - quietAt);
    await this.#until(() => service.onControl(hasNoRepairs), boundMs, "no repair is pending");
    for (const base of service.bases.filter(({ facts }) => facts.mode === "live"))
      await this.#until(() => service.onControl(isReadOut(base)), READ_OUT_MS, "the feed is read out");
    await service.readAudits();
    await service.checkArrivals();
    figures.note("everything checked after the fault", performance.now() - mendedAt);
  }

  async #equal(base: WatchedBase, boundMs: number): Promise<void> {
    const dump = await base.source.dump(base.facts.sourceBaseId);
    let differences: string[] = [];
    const isEqual = async () => {
      const compared = await compareToSource(base.reader, dump);
      differences = compared.differences;
      if (differences.length > 0) return false;
      this.figures.cells += compared.cells;
      return true;
    };
    try {
      await until(isEqual, { what: "equal", timeoutMs: boundMs, intervalMs: 100, retryErrors: true });
    } catch (error) {
      const why = differences.length > 0 ? differences.slice(0, 3).join("; ") : String(error);
      throw new Error(
        `I3: ${base.facts.mode} differs from its source ${boundMs} ms after the last change: ${why}`,
      );
    }
  }

  #until<T>(condition: () => T | Promise<T>, timeoutMs: number, what: string) {
    return until(condition, { what, timeoutMs, intervalMs: POLL_MS, retryErrors: true });
  }
}

/** Of several errors each: together they have none. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}

async function firstUse(base: WatchedBase, since: Date): Promise<Date | undefined> {
  const [row] = await base.owner<{ at: Date | null }[]>`
    select min(at) as at from chaos.log where at > ${since}`;
  return row?.at ?? undefined;
}

/** Has live mode itself kept up, and not the sweep beside it alone? A base that has no feed just now has nothing to read. */
function isReadOut({ facts, source }: WatchedBase): (control: Sql) => Promise<boolean> {
  return async (control) => {
    const [feed] = await control<{ hookId: string | null; cursor: number }[]>`
      select hook_id as "hookId", cursor::int as cursor from live_feeds where base_id = ${facts.id}`;
    if (!feed?.hookId) return true;
    const hooks = await source.call<{ id: string; cursorForNextPayload: number }[]>(
      "GET",
      `bases/${facts.sourceBaseId}/webhooks`,
    );
    return hooks.some(({ id, cursorForNextPayload: end }) => id === feed.hookId && end === feed.cursor);
  };
}

async function hasNoRepairs(control: Sql): Promise<boolean> {
  const [row] = await control<{ count: number }[]>`select count(*)::int as count from repairs`;
  return row!.count === 0;
}
