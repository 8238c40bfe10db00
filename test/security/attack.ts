/** What an attack is: a program of somebody who has no more than an address, a key or an account of their own. */
import type { Random } from "../../apps/sandbox/random";
import type { Kind } from "./canary";
import type { Service } from "./service";

export interface AttackResult {
  attempted: number;
  /** Attempts that did harm which somebody else could observe. */
  succeeded: number;
  /** In words: which, and what it did. */
  notes: string[];
}

export interface Attack {
  name: string;
  /** Of the security audit. */
  finding: string;
  /** Calls that docs/security.md names among what is not promised while this goes on: measured and shown, not limited. */
  mayTakeLonger?: Kind[];
  /**
   * Attacks, and leaves the service as it was as well as it can.
   *
   * @param rounds how often; a round is a few seconds' work
   * @param random everything that varies comes from it
   */
  run(service: Service, rounds: number, random: Random): Promise<AttackResult>;
  /** What takes a minute and more, once: of the long form only. */
  patiently?(service: Service, random: Random): Promise<AttackResult>;
}

/** Counts attempts. Notes are kept of the first few that succeed. */
export class Tally implements AttackResult {
  attempted = 0;
  succeeded = 0;
  readonly notes: string[] = [];

  /** @param harm what was done, where it succeeded */
  add(harm: string | false | undefined): void {
    this.attempted++;
    if (!harm) return;
    this.succeeded++;
    if (this.notes.length < MAX_NOTES) this.notes.push(harm);
  }

  /** Attempts of one kind that were counted together. */
  addMany(attempted: number, succeeded: number, harm: string): void {
    this.attempted += attempted;
    this.succeeded += succeeded;
    if (harm !== "" && succeeded > 0 && this.notes.length < MAX_NOTES)
      this.notes.push(`${succeeded} × ${harm}`);
  }
}

const MAX_NOTES = 10;

/** Runs `work` for each item, no more than `perSecond` a second, and waits for all. */
export async function paced<T>(
  items: Iterable<T>,
  perSecond: number,
  work: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  const running: Promise<unknown>[] = [];
  const from = performance.now();
  for (const item of items) {
    const index = running.length;
    running.push(work(item, index).catch(() => undefined));
    const early = from + ((index + 1) * 1000) / perSecond - performance.now();
    if (early > 0) await Bun.sleep(early);
  }
  await Promise.all(running);
}
