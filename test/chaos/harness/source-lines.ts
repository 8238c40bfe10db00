/**
 * The ways of the service's processes to the source. They run in the source's process, which nothing else keeps busy: in
 * the harness's own, requests that were sent in time would arrive in a bunch whenever it had something else to do.
 */
import { type FaultLine, faultLine } from "../../support/fault-line";
import { clockMs } from "../../support/stall-watch";

const CALLS = ["cut", "reset", "stall", "strand", "mend"] as const;
const NUMBERS = ["delayMs", "upBytesPerSecond", "downBytesPerSecond"] as const;

/** What can be done to a way, here or in another process. */
export type Spoilable = Pick<FaultLine, "port" | (typeof CALLS)[number] | (typeof NUMBERS)[number]>;

/** What the harness asks of a line. */
export type LineChange =
  | { call: (typeof CALLS)[number] }
  | { set: (typeof NUMBERS)[number]; value: number | "unlimited" };

/** A line in another process, as it is used here. @param change resolves when it is done there */
export function remoteLine(port: number, change: (change: LineChange) => Promise<unknown>): Spoilable {
  const line = { port } as Spoilable;
  for (const call of CALLS) Object.assign(line, { [call]: () => change({ call }) });
  for (const name of NUMBERS)
    Object.defineProperty(line, name, {
      set: (value: number) => void change({ set: name, value: Number.isFinite(value) ? value : "unlimited" }),
    });
  return line;
}

/** The lines of the source's process. */
export class SourceLines {
  readonly #lines: FaultLine[] = [];
  #releasedAt: number[] = [];

  /** Opens one more, to the source's port. @returns its port, by which it is named */
  async open(sourcePort: number): Promise<number> {
    const line = await faultLine({ host: "127.0.0.1", port: sourcePort }, { isPostgres: false });
    this.#lines.push(line);
    return line.port;
  }

  async change(port: number, change: LineChange): Promise<void> {
    const line = this.#lines.find((one) => one.port === port)!;
    if ("set" in change) {
      line[change.set] = change.value === "unlimited" ? Number.POSITIVE_INFINITY : change.value;
      return;
    }
    if (change.call === "mend" && line.isHolding) this.#releasedAt.push(clockMs());
    await line[change.call]();
  }

  /** When what a line had held back went on, since the last call; on the machine's clock, ms. */
  takeReleases(): number[] {
    return this.#releasedAt.splice(0);
  }
}
