/**
 * How much longer the canary's calls took while an attack was on. Windows under attack and quiet ones take turns, as what
 * a machine does changes by the minute; the 95th of a hundred is that of all windows of one kind together, and what the
 * choice of windows is worth is found by choosing others of them (a bootstrap).
 */
import { Random } from "../../apps/sandbox/random";
import { quantile } from "../support/quantile";
import type { Kind, Window } from "./canary";

/** How much longer the canary's calls may take at the 95th of a hundred while somebody attacks, than next to a tenant. */
export const MAX_RATIO = 1.2;
/** Less than this, ms, is what a clock and a scheduler are worth. */
export const NOISE_MS = 2;
/** A quantile of fewer says nothing. */
const MIN_SAMPLES = 20;
/** Choices of windows, and the part of them that is left out on either side. */
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
  /** Of the two, and between what eight of ten other choices of windows have it. */
  ratio: number;
  low: number;
  high: number;
}

/** The worst ratio of each kind of call next to an ordinary tenant. */
export type Control = Partial<Record<Kind, number>>;

/** Of each kind of call that there were enough of. */
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

/** Whether an attack is what made the calls slow. */
export function isSlowed({ kind, from, to, ratio }: Latency, control: Control): boolean {
  return ratio > limitOf(kind, control) && to - from > NOISE_MS;
}

/** Whether the calls took so much longer that other windows might say otherwise: to be measured for longer. */
export function isUncertain(latency: Latency, control: Control): boolean {
  const { kind, from, low, high } = latency;
  const limit = limitOf(kind, control);
  return low <= limit && high > limit && from * (high - 1) > NOISE_MS;
}

function limitOf(kind: Kind, control: Control): number {
  return MAX_RATIO * Math.max(1, control[kind] ?? 1);
}
