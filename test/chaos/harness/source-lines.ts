/**
 * The fault proxies between the service's processes and the source. They run in the source's process, which does
 * nothing else: in the harness's process, requests that were sent in time would arrive together whenever it was busy.
 */
import { type FaultProxy, faultProxy } from "../../support/fault-proxy";
import { Kept } from "./kept";

const CALLS = ["cut", "reset", "stall", "blackhole", "restore"] as const;
const NUMBERS = ["delayMs", "upBytesPerSecond", "downBytesPerSecond"] as const;

/** The operations on a fault proxy, in this process or another. */
export type Spoilable = Pick<FaultProxy, "port" | (typeof CALLS)[number] | (typeof NUMBERS)[number]>;

/** A connection to the source. */
export interface SourceWay extends Spoilable {
  /**
   * Until it is restored, data that is sent over it counts from the time at which it would have arrived without this
   * proxy: no client can know that its requests will be delayed, and for how long.
   */
  countFromSent(): void;
}

/** The requests of the harness to a proxy. */
export type LineChange =
  | { call: (typeof CALLS)[number] | "countFromSent" }
  | { set: (typeof NUMBERS)[number]; value: number | "unlimited" };

/** A fault proxy in another process. @param change resolves when the change is applied there */
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

interface Line {
  line: FaultProxy;
  /** The process that uses it. */
  client: string;
  kept: Kept;
}

/** Where a request came from, and how long a proxy has delayed it, if it counts from when it was sent, ms. */
export interface Origin {
  client: string | undefined;
  keptMs: number;
}

/** The proxies of the source's process. */
export class SourceProxies {
  readonly #lines = new Map<number, Line>();

  /**
   * Opens another one, to the source's port.
   *
   * @param client the process that will use it
   * @returns its port, which identifies it
   */
  async open(sourcePort: number, client: string): Promise<number> {
    const line = await faultProxy({ host: "127.0.0.1", port: sourcePort }, { isPostgres: false });
    const kept = new Kept();
    line.onPass = (targetPort, keptMs) => kept.passed(targetPort, performance.now(), keptMs);
    this.#lines.set(line.port, { line, client, kept });
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

  /**
   * Returns the origin of what arrived at the source by a port. The system gives the port of a closed connection to
   * others, so it is the proxy that last passed data there.
   */
  originOf(port: number, arrivedAt: number): Origin {
    const passes = [...this.#lines.values()].flatMap(({ client, kept }) => {
      const pass = kept.lastPass(port, arrivedAt);
      return pass ? [{ at: pass.at, client, keptMs: kept.keptMs(pass) }] : [];
    });
    return passes.toSorted((a, b) => b.at - a.at)[0] ?? { client: undefined, keptMs: 0 };
  }

  /** Forgets what arrived before. */
  forget(before: number): void {
    for (const { kept } of this.#lines.values()) kept.forget(before);
  }
}
