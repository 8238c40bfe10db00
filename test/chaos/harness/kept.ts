/**
 * Records how long a proxy has delayed each piece of data, and which data counts from the time when it was sent. All
 * times are of one clock, ms.
 *
 * A connection carries one request at a time: the data that last passed before a request arrived belongs to that
 * request.
 */
interface Pass {
  at: number;
  keptMs: number;
}

export class Kept {
  /** By the connection's port, in order of time. */
  readonly #passes = new Map<number, Pass[]>();
  #spells: { from: number; to: number }[] = [];

  /** Data that is sent from now on counts from the time when it was sent. */
  begin(at: number): void {
    this.#spells.push({ from: at, to: Number.POSITIVE_INFINITY });
  }

  end(at: number): void {
    for (const spell of this.#spells) spell.to = Math.min(spell.to, at);
  }

  passed(port: number, at: number, keptMs: number): void {
    const passes = this.#passes.get(port) ?? [];
    this.#passes.set(port, passes);
    passes.push({ at, keptMs });
  }

  /** Returns the data that last passed by a port until then, or undefined. */
  lastPass(port: number, until: number): Pass | undefined {
    return this.#passes.get(port)?.findLast(({ at }) => at <= until);
  }

  /** How long the data was delayed if it counts from the time when it was sent, and otherwise 0. */
  keptMs({ at, keptMs }: Pass): number {
    const sentAt = at - keptMs;
    return this.#spells.some(({ from, to }) => sentAt >= from && sentAt <= to) ? keptMs : 0;
  }

  /** Forgets earlier data, except the last of each connection: it may belong to a request under way. */
  forget(before: number): void {
    for (const [port, passes] of this.#passes) {
      const last = passes.at(-1)!;
      const rest = passes.filter((pass) => pass.at >= before || pass === last);
      if (last.at < before - FORGOTTEN_MS) this.#passes.delete(port);
      else this.#passes.set(port, rest);
    }
    this.#spells = this.#spells.filter(({ to }) => to >= before - FORGOTTEN_MS);
  }
}

/** Longer than any request takes, ms. */
const FORGOTTEN_MS = 120_000;
