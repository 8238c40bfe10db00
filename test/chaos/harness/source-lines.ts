/**
 * The ways of the service's processes to the source. They run in the source's process, which nothing else keeps busy: in
 * the harness's own, requests that were sent in time would arrive in a bunch whenever it had something else to do.
 */
import { type FaultProxy, faultProxy } from "../../support/fault-proxy";
import { Kept } from "./kept";

const CALLS = ["cut", "reset", "stall", "blackhole", "restore"] as const;
const NUMBERS = ["delayMs", "upBytesPerSecond", "downBytesPerSecond"] as const;

/** What can be done to a way, here or in another process. */
export type Spoilable = Pick<FaultProxy, "port" | (typeof CALLS)[number] | (typeof NUMBERS)[number]>;

/** A way to the source. */
export interface SourceWay extends Spoilable {
  /**
   * Until it is repaired, what is sent over it counts from when it would have arrived without this line. No client can know
   * that its requests will be kept, and for how long.
   */
  countFromSent(): void;
}

/** What the harness asks of a line. */
export type LineChange =
  | { call: (typeof CALLS)[number] | "countFromSent" }
  | { set: (typeof NUMBERS)[number]; value: number | "unlimited" };

/** A line in another process, as it is used here. @param change resolves when it is done there */
export function remoteProxy(port: number, change: (change: LineChange) => Promise<unknown>): SourceWay {
  const line = { port } as SourceWay;
  for (const call of [...CALLS, "countFromSent"] as const)
    Object.assign(line, { [call]: () => change({ call }) });
  for (const name of NUMBERS)
    Object.defineProperty(line, name, {
      set: (value: number) => void change({ set: name, value: Number.isFinite(value) ? value : "unlimited" }),
    });
  return line;
}

/** The lines of the source's process. */
export class SourceProxies {
  readonly #lines = new Map<number, { line: FaultProxy; kept: Kept }>();

  /** Opens one more, to the source's port. @returns its port, by which it is named */
  async open(sourcePort: number): Promise<number> {
    const line = await faultProxy({ host: "127.0.0.1", port: sourcePort }, { isPostgres: false });
    const kept = new Kept();
    line.onPass = (targetPort, keptMs) => kept.passed(targetPort, performance.now(), keptMs);
    this.#lines.set(line.port, { line, kept });
    return line.port;
  }

  async change(port: number, change: LineChange): Promise<void> {
    const { line, kept } = this.#lines.get(port)!;
    if ("set" in change) {
      line[change.set] = change.value === "unlimited" ? Number.POSITIVE_INFINITY : change.value;
      return;
    }
    if (change.call === "countFromSent") return kept.begin(performance.now());
    if (change.call === "restore") kept.end(performance.now());
    await line[change.call]();
  }

  /** How long a line has kept what arrived at the source by that port, as far as it counts from when it was sent, ms. */
  keptMs(port: number, arrivedAt: number): number {
    for (const { kept } of this.#lines.values()) {
      const ms = kept.keptMs(port, arrivedAt);
      if (ms !== undefined) return ms;
    }
    return 0;
  }

  /** Forgets what arrived before. */
  forget(before: number): void {
    for (const { kept } of this.#lines.values()) kept.forget(before);
  }
}
