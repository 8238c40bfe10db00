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
  /** The URL of another tree's proxy, and the bases that only this one is asked for: they share no permits. */
  against: { url: string; pid: number; bases: BenchBase[] } | undefined;
  pids: { proxied: number; bare: number };
  bases: BenchBase[];
}

export interface BenchBase {
  id: string;
  key: string;
  path: string;
  record: string;
}

export type Way = "direct" | "bare" | "proxied" | "against";

/** The ways to the source that are compared. */
export function waysOf({ against }: Bench): Way[] {
  return ["direct", "bare", "proxied", ...(against ? (["against"] as const) : [])];
}

/** Requests to every base, as fast as its rate limit allows. */
export async function sendToAll(bench: Bench, ways: readonly Way[], kind: "read" | "write", each: number) {
  const toBase = async (index: number) => {
    for (let count = 0; count < each; count++) {
      await pacer.turn(bench.bases[index]!);
      for (const way of ways) await send(bench, way, kind, index, count);
    }
  };
  await Promise.all(bench.bases.keys().map(toBase));
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

/** @param index of the base: one of those that are asked for this way */
export async function send(
  { source, bare, proxied, against, bases }: Bench,
  way: Way,
  kind: "read" | "write",
  index: number,
  count: number,
): Promise<void> {
  const at = { direct: source.url, bare, proxied, against: against?.url }[way];
  const { key, path, record } = (way === "against" ? against!.bases : bases)[index]!;
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
