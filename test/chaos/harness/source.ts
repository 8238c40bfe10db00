/** The source as the harness uses it: its control API, the history of each record, and the arrivals of requests. */

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SourceDump } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import { putFirst } from "../../support/priority";
import { scratchFolder } from "../../support/scratch";
import type { Stall } from "../../support/stall-watch";
import { type LineChange, remoteProxy, type SourceWay } from "./source-lines";

/** The longest delay of a change's report, ms. */
const NEWS_MS = 5000;

export type ToSource = { id: number } & (
  | { kind: "take_arrivals" }
  | { kind: "open_line"; client: string }
  | { kind: "change_line"; port: number; change: LineChange }
);
/** The same without the id of the answer. */
type Asked = ToSource extends infer Message
  ? Message extends ToSource
    ? Omit<Message, "id">
    : never
  : never;
export type FromSource =
  | ({ kind: "ready" } & SourceAddress)
  /** Record and token; "" when it was deleted. */
  | { kind: "tokens"; baseId: string; told: [string, string][] }
  | { kind: "answer"; id: number; value: unknown };

export interface SourceAddress {
  /** Its URL for the service's processes, and the authority that they must trust (PEM); "" without TLS. */
  url: string;
  authority: string;
  /** Its URL for the harness, which bypasses the simulated network. */
  controlUrl: string;
  key: string;
}

/** A request at its arrival. */
export interface Arrival {
  /** On the machine's clock, ms; for a request that a proxy has delayed, the time without the delay. */
  at: number;
  isKept?: boolean;
  /** The process that sent it. */
  from?: string | undefined;
  what: string;
}

/** Since the last call. */
export interface Arrivals {
  /** By source base. */
  arrivals: Record<string, Arrival[]>;
  /** 429s that no fault caused. */
  refused: number;
  /** When the source itself was stalled, so that it may report arrivals too late. */
  stalls: Stall[];
}

export interface ChaosSource extends AsyncDisposable {
  key: string;
  /** Opens a new connection to the source for one process: its URL, and the proxy for faults. */
  way(client: string): Promise<{ url: string; line: SourceWay }>;
  /** Environment of the source's clients: the authority to trust. */
  clientEnv: Record<string, string>;
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  dump(baseId: string): Promise<SourceDump>;
  history(baseId: string): TokenHistory;
  takeArrivals(): Promise<Arrivals>;
}

/** The tokens of each record of a base, in the source's order. */
export class TokenHistory {
  readonly #byRecord = new Map<string, string[]>();

  note(recordId: string, token: string): void {
    const known = this.#byRecord.get(recordId);
    if (known) known.push(token);
    else this.#byRecord.set(recordId, [token]);
  }

  /**
   * The position in the record's history at which it had the token, or, without one, was deleted; -1 if never: before
   * it existed.
   */
  indexOf(recordId: string, token: string | undefined): number {
    return this.#byRecord.get(recordId)?.lastIndexOf(token ?? "") ?? -1;
  }

  /** The same for an event that has happened, though its report may arrive later. */
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

/** @param network in the format of `SANDBOX_NETWORK`; absent: loopback without TLS */
export async function startSource(network: string | undefined): Promise<ChaosSource> {
  const histories = new Map<string, TokenHistory>();
  const history = (baseId: string) => {
    const known = histories.get(baseId) ?? new TokenHistory();
    histories.set(baseId, known);
    return known;
  };
  let ready: SourceAddress | undefined;
  let asked = 0;
  const waiting = new Map<number, (value: unknown) => void>();
  const child = Bun.spawn([process.execPath, `${import.meta.dirname}/source-main.ts`], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, SANDBOX_NETWORK: network ?? "" },
    ipc(message: FromSource) {
      if (message.kind === "ready") ready = message;
      else if (message.kind === "answer") waiting.get(message.id)?.(message.value);
      else for (const [recordId, token] of message.told) history(message.baseId).note(recordId, token);
    },
  });
  if (!putFirst(child.pid)) console.log("The source has no priority here: arrivals may be noted late.");
  const folder = scratchFolder("source");
  const { url, authority, controlUrl, key } = await until(() => ready, {
    what: "the source is up",
    timeoutMs: 20_000,
  });
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, authority);
  const ask = <T>(message: Asked): Promise<T> =>
    new Promise((resolve) => {
      const id = ++asked;
      waiting.set(id, (value) => {
        waiting.delete(id);
        resolve(value as T);
      });
      child.send({ ...message, id } satisfies ToSource);
    });
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${controlUrl}/_sandbox/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  };
  return {
    key,
    clientEnv: authority ? { NODE_EXTRA_CA_CERTS: caFile } : {},
    async way(client) {
      const port = await ask<number>({ kind: "open_line", client });
      const line = remoteProxy(port, (change) => ask({ kind: "change_line", port, change }));
      return { url: `${new URL(url).protocol}//127.0.0.1:${port}`, line };
    },
    call,
    dump: (baseId) => call("GET", `dump/${baseId}`),
    history,
    takeArrivals: () => ask<Arrivals>({ kind: "take_arrivals" }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
