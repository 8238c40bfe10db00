/**
 * Simulates latency before and after the state is read or changed, drawn from a seeded sequence.
 */
import { Random } from "./random";
import type { Settings, Span } from "./settings";

export class Latency {
  #random = new Random(1);
  #seed = 1;

  /** The next wait in ms, or 0. */
  draw(settings: Settings, when: "before" | "after"): number {
    if (settings.latency.seed !== this.#seed) {
      this.#seed = settings.latency.seed;
      this.#random = new Random(this.#seed);
    }
    const span: Span = settings.latency[when];
    if (span.maxMs <= 0) return 0;
    return span.minMs + this.#random.next() * (span.maxMs - span.minMs);
  }
}
