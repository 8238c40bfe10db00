/**
 * Tracks the remaining call budget of the bases that a worker holds: one query every few seconds for all of them.
 *
 * Between two queries, each base spends only its own part of the remaining budget, so that several bases together stay
 * within it. The budget's reserve covers calls of one base that another has not reported yet.
 */
import type { Context } from "../../context";
import { BasetideError } from "../../errors";
import type { CallCounter, RateLimiter } from "../../limiter";
import type { Allowance, Host } from "../host";

const POLL_MS = 15_000;

/** The budget of one lease. */
export interface LeasedBudget extends Disposable {
  /** Calls a second that the base may make; Infinity without a cap. */
  readonly ratePerSecond: number;
  /** The user whose limit over all bases may apply; null: none. */
  readonly user: string | null;
  /** Until when the budget is spent; null while calls are left. */
  readonly spentUntil: Date | null;
  /**
   * Takes one call out of the budget.
   *
   * @throws BasetideError `budget_spent`; `control_unavailable` if the budget cannot be read
   */
  take(): Promise<void>;
}

interface BudgetContext extends Pick<Context, "log"> {
  host: Pick<Host, "allowances">;
  callCounter: CallCounter;
}

export class BudgetWatch {
  readonly #ctx: BudgetContext;
  readonly #held = new Map<string, Part>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: BudgetContext) {
    this.#ctx = ctx;
  }

  /** Tracks the base until the returned handle is disposed of. @throws the database's error */
  async hold(baseId: string): Promise<LeasedBudget> {
    const part = new Part(() => this.#read([baseId]));
    await part.renew();
    this.#held.set(baseId, part);
    this.#timer ??= setTimeout(() => this.#poll(), POLL_MS);
    part.onEnd = () => {
      if (this.#held.get(baseId) === part) this.#held.delete(baseId);
      if (this.#held.size === 0) this.#rest();
    };
    return part;
  }

  /** Stops polling while no base is held: a timer would keep the process from ending. */
  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #read(baseIds: string[]): Promise<Allowance[]> {
    const { host, callCounter } = this.#ctx;
    const allowances = await host.allowances(baseIds);
    if (allowances.every(({ left }) => left === Infinity)) return allowances;
    // This process's last calls must not be spent twice.
    await callCounter.flush();
    return host.allowances(baseIds);
  }

  async #poll(): Promise<void> {
    const ids = [...this.#held.keys()];
    try {
      for (const allowance of await this.#read(ids)) this.#held.get(allowance.baseId)?.set(allowance);
    } catch (error) {
      this.#ctx.log.debug({ error }, "checking budgets failed");
    }
    if (this.#held.size === 0) this.#rest();
    else this.#timer = setTimeout(() => this.#poll(), POLL_MS);
  }
}

/** Wraps the rate limiter for a sync that must keep to a budget. */
export function withinBudget(limiter: RateLimiter, budget: LeasedBudget): RateLimiter {
  return {
    ...limiter,
    async acquireSync(key, share, signal, call) {
      await budget.take();
      return limiter.acquireSync(key, share, signal, { ...call, user: budget.user });
    },
  };
}

class Part implements LeasedBudget {
  onEnd = () => {};
  readonly #read: () => Promise<Allowance[]>;
  #allowance: Allowance | undefined;
  /** Calls that this base may make until the next query. */
  #left = 0;
  #renewal: Promise<void> | undefined;

  constructor(read: () => Promise<Allowance[]>) {
    this.#read = read;
  }

  get ratePerSecond(): number {
    return this.#allowance?.ratePerSecond ?? Infinity;
  }

  get user(): string | null {
    return this.#allowance?.user ?? null;
  }

  get spentUntil(): Date | null {
    const { left = Infinity, bases = 1, endsAt } = this.#allowance ?? {};
    return endsAt && left < bases ? endsAt : null;
  }

  set(allowance: Allowance): void {
    this.#allowance = allowance;
    this.#left = Math.floor(allowance.left / allowance.bases);
  }

  /** Reads the budget again; concurrent calls share one query. */
  renew(): Promise<void> {
    this.#renewal ??= this.#ask().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async take(): Promise<void> {
    if (this.#left < 1) await this.renew();
    if (this.#left < 1) throw spent(this.#allowance);
    this.#left--;
  }

  async #ask(): Promise<void> {
    const [allowance] = await this.#read();
    if (allowance) this.set(allowance);
    // The base is gone; its holder learns that elsewhere.
    else this.#left = Infinity;
  }

  [Symbol.dispose](): void {
    this.onEnd();
  }
}

function spent(allowance: Allowance | undefined): BasetideError {
  const until = allowance?.endsAt.toISOString().slice(0, 10) ?? "the end of the month";
  const of = allowance?.workspace ? ` of the workspace "${allowance.workspace.name}"` : "";
  return new BasetideError(
    "budget_spent",
    `Sync has used its share of this month's call budget${of}. Syncing is paused until ${until} (UTC) or until the budget is increased. Clients can keep calling.`,
  );
}
