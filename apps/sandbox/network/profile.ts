/**
 * The profile of the simulated network, and its text form: `80±20`, or JSON with more.
 */
import { ControlError } from "../errors";

/** Times are ms. */
export interface NetworkProfile {
  /** The mean time to the sandbox and back; each direction takes half of it. */
  roundTripMs: number;
  /** The most by which each direction's delay varies, drawn for every piece of bytes. */
  jitterMs: number;
  /** The time to open a connection beyond the round trips of TCP and TLS: a name look-up, a busy balancer. */
  handshakeMs: number;
  /** The probability that a piece of bytes resets its connection instead of arriving. */
  resetShare: number;
  /** The sandbox's side closes a connection that is idle for this long; 0 is never. */
  idleMs: number;
  /** Of the sequence for jitter and resets. */
  seed: number;
}

/** The usual time after which load balancers of HTTP services close an idle connection, ms. */
const IDLE_MS = 60_000;

/** No delay; idle connections end, as everywhere. */
export const LOOPBACK: NetworkProfile = {
  roundTripMs: 0,
  jitterMs: 0,
  handshakeMs: 0,
  resetShare: 0,
  idleMs: IDLE_MS,
  seed: 1,
};

/** @throws ControlError that names an unknown key, or a value that is not a number or out of range */
export function mergeProfile(profile: NetworkProfile, patch: Partial<NetworkProfile>): NetworkProfile {
  for (const [name, value] of Object.entries(patch)) {
    if (!(name in LOOPBACK))
      throw new ControlError(`A network has no "${name}". Use one of: ${Object.keys(LOOPBACK).join(", ")}.`);
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
      throw new ControlError(`"${name}" of a network must be a number, 0 or more.`);
  }
  const merged = { ...profile, ...patch };
  if (merged.jitterMs > merged.roundTripMs / 2)
    throw new ControlError(
      '"jitterMs" of a network is at most half of "roundTripMs": no direction takes less than 0.',
    );
  if (merged.resetShare > 1) throw new ControlError('"resetShare" of a network is a share, at most 1.');
  return merged;
}

/**
 * Parses a profile from a flag or variable: `80±20` (or `80+-20`) for round trip and jitter, or JSON with any part of a
 * profile.
 *
 * @throws ControlError if it is neither
 */
export function parseProfile(text: string): NetworkProfile {
  const [, roundTrip, jitter = "0"] = /^(\d+)(?:(?:±|\+-|\/)(\d+))?$/.exec(text.trim()) ?? [];
  if (roundTrip !== undefined)
    return mergeProfile(LOOPBACK, { roundTripMs: Number(roundTrip), jitterMs: Number(jitter) });
  let patch: unknown;
  try {
    patch = JSON.parse(text);
  } catch {
    patch = undefined;
  }
  if (typeof patch !== "object" || patch === null)
    throw new ControlError(
      `"${text}" is no network. Give round trip and jitter in ms (80±20), or JSON: {"roundTripMs":80,"idleMs":5000}.`,
    );
  return mergeProfile(LOOPBACK, patch);
}
