/**
 * Monthly call caps: counts the calls of each workspace per calendar month, and applies its plan's policy beyond the
 * cap.
 *
 * A call counts once the throttle has let it through, if it names a base. Calls of `/v0/meta` that do count too, though
 * they are still answered beyond the cap. A base is its own workspace until it is placed in one.
 */
import { ControlError } from "./errors";

/** Requests a second for each base of a workspace that is slowed. */
export const SLOW_REQUESTS_PER_SECOND = 2;

export interface CapPolicy {
  /** Calls that are answered in a month; null: no cap. */
  cap: number | null;
  /** Beyond it: 429 `PUBLIC_API_BILLING_LIMIT_EXCEEDED`, or the throttle at 2 requests a second. */
  overCap: "block" | "slow";
}

export interface CapUsage extends CapPolicy {
  workspaceId: string;
  /** In UTC, by the sandbox's clock: `2026-11`. */
  month: string;
  calls: number;
  isOver: boolean;
}

const NO_CAP: CapPolicy = { cap: null, overCap: "block" };

export class Caps {
  readonly #now: () => number;
  readonly #workspaces = new Map<string, string>();
  readonly #policies = new Map<string, CapPolicy>();
  readonly #calls = new Map<string, number>();
  #month = { name: "", startMs: 0, endMs: 0 };

  /** @param now the sandbox's clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The policy for the next call to a base, if its workspace has used up its month. */
  over(baseId: string): CapPolicy["overCap"] | undefined {
    const workspaceId = this.#workspaceOf(baseId);
    const policy = this.#policies.get(workspaceId);
    if (policy === undefined || policy.cap === null) return undefined;
    return this.#callsOf(workspaceId) >= policy.cap ? policy.overCap : undefined;
  }

  count(baseId: string): void {
    const workspaceId = this.#workspaceOf(baseId);
    this.#calls.set(workspaceId, this.#callsOf(workspaceId) + 1);
  }

  /** @param id of a workspace, or of a base, which stands for its workspace */
  set(id: string, patch: Partial<CapPolicy> & { calls?: number }): CapUsage {
    const { cap, overCap, calls } = patch;
    if (cap !== undefined && cap !== null && !(Number.isInteger(cap) && cap >= 0))
      throw new ControlError("`cap` must be a whole number of calls, or null for none.");
    if (overCap !== undefined && overCap !== "block" && overCap !== "slow")
      throw new ControlError('`overCap` must be "block" or "slow".');
    if (calls !== undefined && !(Number.isInteger(calls) && calls >= 0))
      throw new ControlError("`calls` must be a whole number.");
    const workspaceId = this.#workspaceOf(id);
    const policy = this.#policies.get(workspaceId) ?? NO_CAP;
    this.#policies.set(workspaceId, {
      cap: cap === undefined ? policy.cap : cap,
      overCap: overCap ?? policy.overCap,
    });
    if (calls !== undefined) {
      this.#turnMonth();
      this.#calls.set(workspaceId, calls);
    }
    return this.usage(id);
  }

  /** Puts bases into one workspace, whose calls are counted together from now on. */
  place(workspaceId: string, baseIds: readonly string[]): void {
    for (const baseId of baseIds) this.#workspaces.set(baseId, workspaceId);
  }

  usage(id: string): CapUsage {
    const workspaceId = this.#workspaceOf(id);
    const calls = this.#callsOf(workspaceId);
    const policy = this.#policies.get(workspaceId) ?? NO_CAP;
    const isOver = policy.cap !== null && calls >= policy.cap;
    return { workspaceId, month: this.#month.name, calls, ...policy, isOver };
  }

  clear(): void {
    this.#workspaces.clear();
    this.#policies.clear();
    this.#calls.clear();
  }

  #workspaceOf(id: string): string {
    return this.#workspaces.get(id) ?? id;
  }

  #callsOf(workspaceId: string): number {
    this.#turnMonth();
    return this.#calls.get(workspaceId) ?? 0;
  }

  /** Resets the counters when the clock has entered another month, forwards or backwards. */
  #turnMonth(): void {
    const nowMs = this.#now();
    if (nowMs >= this.#month.startMs && nowMs < this.#month.endMs) return;
    const date = new Date(nowMs);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    const startMs = Date.UTC(year, month);
    const name = date.toISOString().slice(0, 7);
    if (this.#month.name !== "") this.#calls.clear();
    this.#month = { name, startMs, endMs: Date.UTC(year, month + 1) };
  }
}
