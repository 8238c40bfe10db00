/**
 * The interface of attacks: programs with the rights of an outsider, who has only an address, a key, or an account of
 * their own.
 */
import type { Random } from "../../apps/sandbox/random";
import type { Kind } from "./canary";
import type { Service } from "./service";

export interface AttackResult {
  attempted: number;
  /** Attempts that did harm that another account could observe. */
  succeeded: number;
  /** Descriptions of the successful attempts. */
  notes: string[];
}

export interface Attack {
  name: string;
  /** Of the security audit. */
  finding: string;
  /**
   * Calls for which docs/security.md does not promise a latency during this attack: measured and shown, not limited.
   */
  mayTakeLonger?: Kind[];
  /**
   * Attacks, and restores the service as well as it can.
   *
   * @param rounds how often; a round takes a few seconds
   * @param random the source of all variation
   */
  run(service: Service, rounds: number, random: Random): Promise<AttackResult>;
  /** An attack that takes a minute or more, run once: only in the long form. */
  patiently?(service: Service, random: Random): Promise<AttackResult>;
}

/** Counts attempts, and stores descriptions of the first few that succeed. */
export class Tally implements AttackResult {
  attempted = 0;
  succeeded = 0;
  readonly notes: string[] = [];

  /** @param harm the harm, if it succeeded */
  add(harm: string | false | undefined): void {
    this.attempted++;
    if (!harm) return;
    this.succeeded++;
    if (this.notes.length < MAX_NOTES) this.notes.push(harm);
  }

  /** Adds attempts of one kind that were counted together. */
  addMany(attempted: number, succeeded: number, harm: string): void {
    this.attempted += attempted;
    this.succeeded += succeeded;
    if (harm !== "" && succeeded > 0 && this.notes.length < MAX_NOTES)
      this.notes.push(`${succeeded} × ${harm}`);
  }
}

const MAX_NOTES = 10;

/** Runs `work` for each item, at most `perSecond` a second, and waits for all. */
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
