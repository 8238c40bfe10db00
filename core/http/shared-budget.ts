/**
 * Divides something that a process has a limited amount of (memory for bodies, places in a queue, connections) among its
 * clients.
 *
 * B1. No owner (a key, a base, a network) has more than its share.
 * B2. When everything is in use, a client that wants little still gets it: the newest share of the largest network gives
 *     way, if that network has more than the client's own. If no network has more, wider ones are compared, because one
 *     client may have many.
 */
import { networksAround } from "./client-network";

/** How many networks around a client are compared, at most. */
const LEVELS = 4;

/** @typeParam Kind the kinds of owners that have a share each, besides client networks */
interface BudgetLimits<Kind extends string> {
  /** For all owners together. */
  most: number;
  /** For one owner of each kind. */
  mostPer: Record<Kind | "network", number>;
}

export interface BudgetShare extends Disposable {
  /** @returns false if there is no room for this much more */
  take(amount: number): boolean;
  /** From now on it does not give way to others. */
  keep(): void;
}

interface ShareOptions {
  /** Called when the share has lost what it had, in favor of another one; absent: it never gives way. */
  giveWay?: (() => void) | undefined;
  /** It gives way to any share that is not doubtful, and none of those gives way to it. */
  isDoubtful?: boolean;
}

/** What a client has. */
interface Held {
  /** The names of its owners, by kind. */
  owners: Record<string, string>;
  amount: number;
  giveWay: (() => void) | undefined;
  isDoubtful: boolean;
}

export class SharedBudget<Kind extends string> {
  readonly #most: number;
  readonly #mostPer: [kind: string, most: number][];
  /** Those that have something, the newest last. */
  readonly #held = new Set<Held>();
  /** The amount of each owner, by kind and name. */
  readonly #ofOwners = new Map<string, number>();
  #total = 0;

  constructor({ most, mostPer }: BudgetLimits<Kind>) {
    this.#most = most;
    this.#mostPer = Object.entries<number>(mostPer);
  }

  /** What is in use. */
  get total(): number {
    return this.#total;
  }

  /** Returns a share that has nothing yet; it gives back what it has at the end of its scope. */
  open(owners: Record<Kind | "network", string>, options: ShareOptions = {}): BudgetShare {
    const { giveWay, isDoubtful = false } = options;
    const held: Held = { owners, amount: 0, giveWay, isDoubtful };
    return {
      take: (amount) => this.#take(held, amount),
      keep: () => {
        held.giveWay = undefined;
      },
      [Symbol.dispose]: () => this.#add(held, -held.amount),
    };
  }

  #take(held: Held, amount: number): boolean {
    for (const [kind, most] of this.#mostPer) {
      const isItsOwner = ({ owners }: Held) => owners[kind] === held.owners[kind];
      while ((this.#ofOwners.get(nameOf(held, kind)) ?? 0) + amount > most)
        if (kind === "network" || !this.#makeRoom(held, amount, isItsOwner)) return false;
    }
    while (this.#total + amount > this.#most) if (!this.#makeRoom(held, amount, () => true)) return false;
    this.#add(held, amount);
    return true;
  }

  /** @returns whether another share gave way (B2) */
  #makeRoom(held: Held, amount: number, isAmong: (other: Held) => boolean): boolean {
    const others = [...this.#held].filter((other) => other !== held && isAmong(other));
    const doubtful = others.filter(({ isDoubtful }) => isDoubtful);
    const newest = held.isDoubtful
      ? newestOfLargest(doubtful, held, amount)
      : (doubtful.findLast(({ giveWay }) => giveWay) ?? newestOfLargest(others, held, amount));
    if (!newest) return false;
    this.#add(newest, -newest.amount);
    newest.giveWay!();
    return true;
  }

  #add(held: Held, amount: number): void {
    held.amount += amount;
    this.#total += amount;
    if (held.amount > 0) this.#held.add(held);
    else this.#held.delete(held);
    for (const [kind] of this.#mostPer) {
      const name = nameOf(held, kind);
      const left = (this.#ofOwners.get(name) ?? 0) + amount;
      if (left > 0) this.#ofOwners.set(name, left);
      else this.#ofOwners.delete(name);
    }
  }
}

function nameOf({ owners }: Held, kind: string): string {
  return `${kind} ${owners[kind]}`;
}

/** Returns the newest share that can give way of the network that has more than the client's own would have. */
function newestOfLargest(others: Held[], held: Held, amount: number): Held | undefined {
  const all = others.map((other) => ({ other, networks: networksAround(other.owners.network!) }));
  const own = networksAround(held.owners.network!);
  for (let level = 0; level < LEVELS; level++) {
    const groupOf = (networks: string[]) => networks[level] ?? networks.at(-1)!;
    const amounts = new Map([[groupOf(own), held.amount + amount]]);
    for (const { other, networks } of all)
      amounts.set(groupOf(networks), (amounts.get(groupOf(networks)) ?? 0) + other.amount);
    const [largest] = [...amounts].reduce((one, next) => (next[1] > one[1] ? next : one));
    const newest =
      largest !== groupOf(own) &&
      all.findLast(({ other, networks }) => other.giveWay && groupOf(networks) === largest);
    if (newest) return newest.other;
  }
  return undefined;
}
