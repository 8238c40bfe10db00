/** The verdict of `bun run attack` on the canary's calls, for windows with a known truth. */
import { expect, test } from "vitest";
import { Random } from "../../apps/sandbox/random";
import type { Kind } from "../security/canary";
import { controlOf, isSlowed, isUncertain, latencies, type Pair } from "../security/latency";

const PER_WINDOW = 30;

/** Calls of about 50 ms with a tail, `slower` times as long under attack, in windows that differ by `noise`. */
function measured(pairs: number, slower: number, noise: number, seed: string): Pair[] {
  const random = new Random(seed);
  const window = (factor: number) => {
    const machine = 1 + noise * (random.next() - 0.5);
    const calls = Array.from({ length: PER_WINDOW }, () => 40 * factor * machine * (1 + random.next() ** 4));
    return { samples: { console: calls, write: [], read: [], sql: [] } satisfies Record<Kind, number[]> };
  };
  return Array.from({ length: pairs }, () => ({ before: window(1), during: window(slower) }));
}

const SEEDS = Array.from({ length: 4 }, (_, at) => `seed ${at}`);

test("calls that take as long as before are not slowed, and twice as long is", () => {
  for (const seed of SEEDS) {
    const [same] = latencies(measured(12, 1, 0.2, seed));
    const [twice] = latencies(measured(12, 2, 0.2, seed));
    expect([isSlowed(same!, {}), isSlowed(twice!, {})], seed).toEqual([false, true]);
    expect(isUncertain(twice!, {}), seed).toBe(false);
    expect(same!.low, seed).toBeLessThanOrEqual(same!.ratio);
    expect(same!.high, seed).toBeGreaterThanOrEqual(same!.ratio);
  }
});

test("one slow window of six requires more of them, six of six do not", () => {
  for (const seed of SEEDS) {
    const one = [...measured(5, 1, 0, seed), ...measured(1, 2, 0, seed)];
    expect(isUncertain(latencies(one)[0]!, {}), seed).toBe(true);
    expect(isUncertain(latencies(measured(6, 2, 0, seed))[0]!, {}), seed).toBe(false);
  }
});

test("an ordinary tenant's own ratio is the baseline, and less than 10 ms is noise", () => {
  const [half] = latencies(measured(12, 1.5, 0, "half as long again"));
  expect(isSlowed(half!, {})).toBe(true);
  expect(isSlowed(half!, controlOf([measured(12, 1.5, 0, "a tenant")]))).toBe(false);
  expect(isSlowed({ ...half!, from: 1, to: 10.9, ratio: 10.9 }, {})).toBe(false);
});

test("kinds with too few calls get no verdict", () => {
  expect(latencies(measured(12, 1, 0, "calls")).map(({ kind }) => kind)).toEqual(["console"]);
  expect(latencies([])).toEqual([]);
});
