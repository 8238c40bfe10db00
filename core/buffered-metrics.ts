/**
 * Metrics of events that come thousands of times a second. For each one, prom-client checks and joins the labels, which
 * takes longer than much of what is measured. Here it does so when the metrics are read, or for many events at once.
 */
import { Counter, Histogram, type Registry } from "prom-client";

/** The most observations that wait. */
const MOST_PENDING = 1000;

interface Configuration {
  name: string;
  help: string;
  /** Its only label. */
  label: string;
  registers: Registry[];
}

export class BufferedCounter extends Counter {
  readonly #label: string;
  readonly #pending = new Map<string, number>();

  constructor({ label, ...rest }: Configuration) {
    super({ ...rest, labelNames: [label] });
    this.#label = label;
  }

  count(value: string): void {
    this.#pending.set(value, (this.#pending.get(value) ?? 0) + 1);
  }

  /** prom-client calls it before it reads the metric. */
  readonly collect = () => {
    for (const [value, count] of this.#pending) this.inc({ [this.#label]: value }, count);
    this.#pending.clear();
  };
}

export class BufferedHistogram extends Histogram {
  readonly #pending = new Map<string, number[]>();

  constructor({ label, ...rest }: Configuration & { buckets: number[] }) {
    super({ ...rest, labelNames: [label] });
  }

  /** @param value of the label */
  add(value: string, observed: number): void {
    const pending = this.#pending.get(value);
    if (!pending) this.#pending.set(value, [observed]);
    else if (pending.push(observed) >= MOST_PENDING) this.collect();
  }

  /** prom-client calls it before it reads the metric. */
  readonly collect = () => {
    for (const [value, pending] of this.#pending) {
      const child = this.labels(value);
      for (const observed of pending.splice(0)) child.observe(observed);
    }
  };
}
