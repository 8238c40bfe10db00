/** The source as the harness has it: its control API, what became of each record, and when it was asked. */

import type { SourceDump } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import type { Stall } from "../../support/stall-watch";

/** Longest that news of a change may be on its way to us, ms. */
const NEWS_MS = 5000;

export type ToSource = { kind: "take_arrivals" };
export type FromSource =
  | { kind: "ready"; url: string; key: string }
  /** Record and token; "" when it was deleted. */
  | { kind: "tokens"; baseId: string; told: [string, string][] }
  | ({ kind: "arrivals" } & Arrivals);

/** A request as it came. */
export interface Arrival {
  /** On the machine's clock, ms. */
  at: number;
  what: string;
}

/** Since the last time that somebody asked. */
export interface Arrivals {
  /** By source base. */
  arrivals: Record<string, Arrival[]>;
  /** 429s that no fault played. */
  refused: number;
  stalls: Stall[];
}

export interface ChaosSource extends AsyncDisposable {
  pid: number;
  url: string;
  key: string;
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  dump(baseId: string): Promise<SourceDump>;
  history(baseId: string): TokenHistory;
  takeArrivals(): Promise<Arrivals>;
}

/** The tokens that each record of a base has held, in the source's order. */
export class TokenHistory {
  readonly #byRecord = new Map<string, string[]>();

  note(recordId: string, token: string): void {
    const known = this.#byRecord.get(recordId);
    if (known) known.push(token);
    else this.#byRecord.set(recordId, [token]);
  }

  /** Where in the record's history it held the token, or, without one, was gone; -1 if never: before it existed. */
  indexOf(recordId: string, token: string | undefined): number {
    return this.#byRecord.get(recordId)?.lastIndexOf(token ?? "") ?? -1;
  }

  /** The same for what is known to have happened, though we may hear of it only later. */
  async arrivedAt(recordId: string, token: string | undefined): Promise<number> {
    const index = this.indexOf(recordId, token);
    if (index >= 0) return index;
    const deadline = performance.now() + NEWS_MS;
    while (performance.now() < deadline) {
      await Bun.sleep(5);
      const later = this.indexOf(recordId, token);
      if (later >= 0) return later;
    }
    return -1;
  }
}

export async function startSource(): Promise<ChaosSource> {
  const histories = new Map<string, TokenHistory>();
  const history = (baseId: string) => {
    const known = histories.get(baseId) ?? new TokenHistory();
    histories.set(baseId, known);
    return known;
  };
  let ready: { url: string; key: string } | undefined;
  let tellArrivals: (arrivals: Arrivals) => void = () => {};
  const child = Bun.spawn([process.execPath, `${import.meta.dirname}/source-main.ts`], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc(message: FromSource) {
      if (message.kind === "ready") ready = message;
      else if (message.kind === "arrivals") tellArrivals(message);
      else for (const [recordId, token] of message.told) history(message.baseId).note(recordId, token);
    },
  });
  const { url, key } = await until(() => ready, { what: "the source is up", timeoutMs: 20_000 });
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/_sandbox/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  };
  return {
    pid: child.pid,
    url,
    key,
    call,
    dump: (baseId) => call("GET", `dump/${baseId}`),
    history,
    takeArrivals() {
      const { promise, resolve } = Promise.withResolvers<Arrivals>();
      tellArrivals = resolve;
      child.send({ kind: "take_arrivals" } satisfies ToSource);
      return promise;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
