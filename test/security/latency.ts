/**
 * Measures how much longer the canary's calls took during an attack. Windows with and without the attack alternate,
 * because a machine's speed changes by the minute. The 95th percentile is over all windows of one kind together, and
 * its uncertainty is found by resampling the windows (a bootstrap).
 */
import { Random } from "../../apps/sandbox/random";
import { quantile } from "../support/quantile";
import type { Kind, Window } from "./canary";

/**
 * How much longer, compared with an ordinary tenant, the canary's calls may take at the 95th percentile during an
 * attack.
 */
export const MAX_RATIO = 1.2;
/** How much longer they may take in any case, ms: a fifth of a few ms is noise of the scheduler. */
export const MAX_MORE_MS = 10;
/** A quantile of fewer samples is meaningless. */
const MIN_SAMPLES = 20;
/** The number of resamples, and the share of them that is left out on either side. */
const CHOICES = 200;
const TAIL = 0.1;
const KINDS: Kind[] = ["write", "read", "sql", "console"];

export interface Pair {
  before: Pick<Window, "samples">;
  during: Pick<Window, "samples">;
}

export interface Latency {
  kind: Kind;
  /** p95 before and during, ms. */
  from: number;
  to: number;
  /** The ratio of the two, and its range in eight of ten resamples. */
  ratio: number;
  low: number;
  high: number;
}

/** The worst ratio of each kind of call next to an ordinary tenant. */
export type Control = Partial<Record<Kind, number>>;

/** For each kind of call with enough samples. */
export function latencies(pairs: Pair[]): Latency[] {
  return KINDS.flatMap((kind) => {
    const enough = p95s(pairs, kind);
    if (!enough) return [];
    const random = new Random(`${kind} ${pairs.length}`);
    const choose = () => Array.from(pairs, () => random.pick(pairs));
    const others = Array.from({ length: CHOICES }, () => p95s(choose(), kind)?.ratio ?? enough.ratio);
    return { kind, ...enough, low: quantile(others, TAIL), high: quantile(others, 1 - TAIL) };
  });
}

function p95s(pairs: Pair[], kind: Kind): Pick<Latency, "from" | "to" | "ratio"> | undefined {
  const before = pairs.flatMap(({ before }) => before.samples[kind]);
  const during = pairs.flatMap(({ during }) => during.samples[kind]);
  if (Math.min(before.length, during.length) < MIN_SAMPLES) return undefined;
  const [from, to] = [quantile(before, 0.95), quantile(during, 0.95)];
  return { from, to, ratio: from > 0 ? to / from : 1 };
}

/** @param controls windows in which an ordinary tenant worked */
export function controlOf(controls: Pair[][]): Control {
  const control: Control = {};
  for (const { kind, ratio } of controls.flatMap(latencies))
    control[kind] = Math.max(control[kind] ?? 0, ratio);
  return control;
}

/** Whether the attack made the calls slow. */
export function isSlowed({ kind, from, to, ratio }: Latency, control: Control): boolean {
  return ratio > limitOf(kind, control) && to - from > MAX_MORE_MS;
}

/** Whether the result may differ in other windows, so that more must be measured. */
export function isUncertain(latency: Latency, control: Control): boolean {
  const { kind, from, low, high } = latency;
  const limit = limitOf(kind, control);
  return low <= limit && high > limit && from * (high - 1) > MAX_MORE_MS;
}

function limitOf(kind: Kind, control: Control): number {
  return MAX_RATIO * Math.max(1, control[kind] ?? 1);
}
