/** The measurements of a chaos run, formatted for people. */
import { quantile } from "../../support/quantile";
import type { Outcome } from "./chaos";

/** Of one kind of fault, ms. */
interface Kind {
  ran: number[];
  /** Times that no other fault disturbed, and the others. */
  healed: number[];
  disturbed: number[];
  wrong: number;
}

export class Figures {
  /** Cells that were compared with the source and found equal. */
  cells = 0;
  /** Faults that did not happen, because nothing came to their point in time. */
  missed = 0;
  /** By invariant; "-" if none is named. */
  readonly violations = new Map<string, number>();
  readonly #times = new Map<string, number[]>();
  readonly #kinds = new Map<string, Kind>();

  note(what: string, ms: number): void {
    const known = this.#times.get(what);
    if (known) known.push(ms);
    else this.#times.set(what, [ms]);
  }

  suffered({ name, ranMs, healedMs, isDisturbed, missed, wrong }: Outcome): void {
    if (missed !== undefined) {
      this.missed++;
      return;
    }
    const kind = this.#kinds.get(name) ?? { ran: [], healed: [], disturbed: [], wrong: 0 };
    this.#kinds.set(name, kind);
    kind.ran.push(ranMs);
    kind.wrong += wrong.length;
    if (wrong.length === 0) (isDisturbed ? kind.disturbed : kind.healed).push(healedMs);
  }

  found(wrong: readonly string[]): void {
    for (const one of wrong) {
      const invariant = /^(?:I[1-8]|contract|selection)(?=:)/.exec(one)?.[0] ?? "-";
      this.violations.set(invariant, (this.violations.get(invariant) ?? 0) + 1);
    }
  }

  /** How many times of one kind were recorded. */
  count(what: string): number {
    return this.#times.get(what)?.length ?? 0;
  }

  /** The time that this percentage did not exceed, ms; 0 if none was measured. */
  percentile(what: string, percent: number): number {
    return quantile(this.#times.get(what) ?? [], percent / 100);
  }

  get faults(): number {
    return [...this.#kinds.values()].reduce((sum, { ran }) => sum + ran.length, 0);
  }

  describe(): string {
    const kinds = [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1));
    const times = [...this.#times].sort(([a], [b]) => (a < b ? -1 : 1));
    const invariants = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "contract", "selection", "-"];
    return [
      `${"".padEnd(66)}  ---- healed alone ----  -- others in its way --`,
      `${"fault".padEnd(60)} times  ${"ran".padStart(6)}     n    p95  longest     n    p95  longest  wrong`,
      ...kinds.map(([name, { ran, healed, disturbed, wrong }]) =>
        [
          name.padEnd(60),
          String(ran.length).padStart(5),
          seconds(quantile(ran, 0.5)),
          ...[healed, disturbed].flatMap((all) => [
            String(all.length).padStart(5),
            seconds(quantile(all, 0.95)),
            seconds(quantile(all, 1)),
          ]),
          String(wrong).padStart(6),
        ].join(" "),
      ),
      "",
      `${"time".padEnd(62)} number  median     p95 longest`,
      ...times.map(([what, all]) =>
        [
          what.padEnd(62),
          String(all.length).padStart(6),
          ...[50, 95, 100].map((percent) => seconds(this.percentile(what, percent))),
        ].join(" "),
      ),
      "",
      `violations: ${invariants.map((one) => `${one === "-" ? "others" : one} ${this.violations.get(one) ?? 0}`).join(", ")}`,
    ].join("\n");
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`.padStart(7);
}
