/** What a run of faults has measured, for people to read. */
import { quantile } from "../../support/quantile";

export class Figures {
  /** Cells that were compared with the source and found equal. */
  cells = 0;
  readonly #times = new Map<string, number[]>();
  readonly #faults = new Map<string, { count: number; wrong: number; ms: number }>();

  note(what: string, ms: number): void {
    const known = this.#times.get(what);
    if (known) known.push(ms);
    else this.#times.set(what, [ms]);
  }

  suffered(name: string, ms: number, wrong: number): void {
    const known = this.#faults.get(name) ?? { count: 0, wrong: 0, ms: 0 };
    this.#faults.set(name, { count: known.count + 1, wrong: known.wrong + wrong, ms: known.ms + ms });
  }

  /** The time that so many of a hundred did not exceed, ms; 0 where none was measured. */
  percentile(what: string, percent: number): number {
    return quantile(this.#times.get(what) ?? [], percent / 100);
  }

  get faults(): number {
    return [...this.#faults.values()].reduce((sum, { count }) => sum + count, 0);
  }

  describe(): string {
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`.padStart(9);
    const faults = [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1));
    const times = [...this.#times].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      `${"fault".padEnd(58)} times  wrong   mean with checks`,
      ...faults.map(
        ([name, { count, wrong, ms }]) =>
          `${name.padEnd(58)} ${String(count).padStart(5)} ${String(wrong).padStart(6)} ${seconds(ms / count).padStart(18)}`,
      ),
      "",
      `${"time".padEnd(48)} number    median       p95   longest`,
      ...times.map(([what, all]) =>
        [
          what.padEnd(48),
          String(all.length).padStart(6),
          ...[50, 95, 100].map((percent) => seconds(this.percentile(what, percent))),
        ].join(" "),
      ),
    ].join("\n");
  }
}
