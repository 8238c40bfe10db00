/**
 * The parts of the service that faults break. Faults in different parts run at the same time; those that need the same
 * part wait for each other.
 */
import type { Random } from "../../../apps/sandbox/random";
import type { Role, Supervised } from "./supervised";

export type Part = "control" | "source" | "keys" | `cluster ${string}` | `base ${string}`;

/** What a fault needs before it begins. */
export interface Claim {
  /** No other fault breaks or needs these parts meanwhile. */
  breaks?: readonly Part[];
  /** No other fault breaks these parts meanwhile. */
  needs?: readonly Part[];
  /** Hits a process of this role that no other fault hits. If there are several, one is always spared. */
  role?: Role;
  /** The event decides which process: see `Taken.takes`. */
  isNamedLater?: boolean;
}

/** The parts that a fault may break until it releases them. */
export interface Taken {
  /** The process that is hit. @throws Error if none was claimed, or none is known yet */
  readonly process: Supervised;
  /** Returns whether this process may be the one that is hit. If so, no other one can be from then on. */
  takes(process: Supervised | undefined): boolean;
  release(): void;
}

export class Parts {
  readonly #processes: readonly Supervised[];
  readonly #random: Random;
  readonly #broken = new Set<Part>();
  /** Each part as often as a fault needs it. */
  readonly #needed: Part[] = [];
  /** The roles of which a process is claimed, and the processes. */
  readonly #roles: Role[] = [];
  readonly #suffering = new Set<Supervised>();
  #change = Promise.withResolvers<void>();

  constructor(processes: readonly Supervised[], random: Random) {
    this.#processes = processes;
    this.#random = random;
  }

  /** Waits until the whole claim is free, and takes it at once. */
  async take(claim: Claim): Promise<Taken> {
    while (!this.#isFree(claim)) await this.#change.promise;
    const { breaks = [], needs = [], role } = claim;
    for (const part of breaks) this.#broken.add(part);
    this.#needed.push(...needs);
    if (role) this.#roles.push(role);
    let named: Supervised | undefined;
    const name = (process: Supervised) => {
      named = process;
      this.#suffering.add(process);
    };
    if (role && !claim.isNamedLater) name(this.#random.pick(this.#inPeace(role)));
    return {
      get process() {
        if (!named) throw new Error("No process of this fault's own");
        return named;
      },
      takes: (process) => {
        if (!process || process.role !== role) return false;
        if (named) return named === process;
        if (this.#suffering.has(process)) return false;
        name(process);
        return true;
      },
      release: () => {
        for (const part of breaks) this.#broken.delete(part);
        for (const part of needs) remove(this.#needed, part);
        if (role) remove(this.#roles, role);
        if (named) this.#suffering.delete(named);
        this.#change.resolve();
        this.#change = Promise.withResolvers();
      },
    };
  }

  #isFree({ breaks = [], needs = [], role }: Claim): boolean {
    if (breaks.some((part) => this.#broken.has(part) || this.#needed.includes(part))) return false;
    if (needs.some((part) => this.#broken.has(part))) return false;
    if (!role) return true;
    const count = this.#processes.filter((process) => process.role === role).length;
    return this.#roles.filter((one) => one === role).length < Math.max(1, count - 1);
  }

  /**
   * A claim that names its process later needs a free one: there must be one more than may be hit, or no such claim.
   */
  #inPeace(role: Role): Supervised[] {
    return this.#processes.filter((process) => process.role === role && !this.#suffering.has(process));
  }
}

function remove<T>(list: T[], one: T): void {
  list.splice(list.indexOf(one), 1);
}
