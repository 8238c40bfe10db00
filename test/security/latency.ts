/**
 * How much longer the canary's calls took while an attack was on: each window of it is compared with a quiet one right
 * before it, as what a machine does changes by the minute, and the median of these ratios is what counts.
 */
import { quantile } from "../support/quantile";
import type { Kind, Window } from "./canary";

/** How much longer the canary's calls may take at the 95th of a hundred while somebody attacks, than next to a tenant. */
export const MAX_RATIO = 1.2;
/** Less than this, ms, is what a clock and a scheduler are worth. */
export const NOISE_MS = 2;
/** A quantile of fewer says nothing. */
const MIN_SAMPLES = 20;
const KINDS: Kind[] = ["write", "read", "sql", "console"];

export interface Pair {
  before: Pick<Window, "samples">;
  during: Pick<Window, "samples">;
}

export interface Latency {
  kind: Kind;
  /** p95 before and during, ms: medians of the windows. */
  from: number;
  to: number;
  /** Median of the windows' ratios. */
  ratio: number;
}

/** The worst ratio of each kind of call next to an ordinary tenant. */
export type Control = Partial<Record<Kind, number>>;

const median = (values: number[]) => quantile(values, 0.5);

/** Of each kind of call that there were enough of: in the single windows, else in all of them together. */
export function latencies(pairs: Pair[]): Latency[] {
  return KINDS.flatMap((kind) => {
    const all = pairs.map(({ before, during }) => [before.samples[kind], during.samples[kind]] as const);
    const together = [all.flatMap(([one]) => one), all.flatMap(([, other]) => other)] as const;
    const isEnough = (both: readonly [number[], number[]]) =>
      both.every(({ length }) => length >= MIN_SAMPLES);
    const single = all.filter(isEnough);
    const used = single.length > all.length / 2 ? single : [together].filter(isEnough);
    if (used.length === 0) return [];
    const p95s = used.map(([one, other]) => [quantile(one, 0.95), quantile(other, 0.95)] as const);
    return {
      kind,
      from: median(p95s.map(([from]) => from)),
      to: median(p95s.map(([, to]) => to)),
      ratio: median(p95s.map(([from, to]) => (from > 0 ? to / from : 1))),
    };
  });
}

/** @param controls windows in which an ordinary tenant worked */
export function controlOf(controls: Pair[][]): Control {
  const control: Control = {};
  for (const { kind, ratio } of controls.flatMap(latencies))
    control[kind] = Math.max(control[kind] ?? 0, ratio);
  return control;
}

/** Whether an attack is what made the calls slow. */
export function isSlowed({ kind, from, to, ratio }: Latency, control: Control): boolean {
  return ratio > MAX_RATIO * Math.max(1, control[kind] ?? 1) && to - from > NOISE_MS;
}
