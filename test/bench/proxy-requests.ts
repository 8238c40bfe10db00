/**
 * The requests of `proxy.ts`: directly to the source, through a minimal forwarder, and through the proxy, so far apart that
 * none waits for the rate limit of its base.
 */
import type { SandboxProcess } from "../support/sandbox-process";

/** The spacing of a base's requests at which none waits for the rate limit, ms. */
const SPACING_MS = 230;

export interface Bench {
  source: SandboxProcess;
  /** The proxy's URL, with the upstream's host. */
  proxied: string;
  /** The minimal forwarder's URL. */
  bare: string;
  pids: { proxied: number; bare: number };
  bases: { id: string; key: string; path: string; record: string }[];
}

export const WAYS = ["direct", "bare", "proxied"] as const;
export type Way = (typeof WAYS)[number];

/** Requests to every base, as fast as its rate limit allows. */
export async function sendToAll(bench: Bench, ways: readonly Way[], kind: "read" | "write", each: number) {
  const toBase = async (base: Bench["bases"][number]) => {
    for (let count = 0; count < each; count++) {
      await pacer.turn(base);
      for (const way of ways) await send(bench, way, kind, base, count);
    }
  };
  await Promise.all(bench.bases.map(toBase));
}

/** Keeps the requests of a base so far apart that none waits for its rate limit, also those of two measurements. */
class Pacer {
  readonly #nextAt = new Map<object, number>();

  async turn(base: object): Promise<void> {
    await Bun.sleep(Math.max(0, (this.#nextAt.get(base) ?? 0) - performance.now()));
    this.#nextAt.set(base, performance.now() + SPACING_MS);
  }
}

export const pacer = new Pacer();

export async function send(
  { source, bare, proxied }: Bench,
  way: Way,
  kind: "read" | "write",
  { key, path, record }: Bench["bases"][number],
  count: number,
): Promise<void> {
  const at = { direct: source.url, bare, proxied }[way];
  if (kind === "read") await call("GET", `${at}${path}?pageSize=10`, key);
  else await call("PATCH", `${at}${path}/${record}`, key, { fields: { Name: `${way} ${count}` } });
}

export async function call(method: string, url: string, key: string, body?: unknown): Promise<string> {
  const answer = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
  return text;
}
