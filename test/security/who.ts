/** From where a stranger comes, and with which key: every shared budget is attacked in each of these ways. */
import type { Random } from "../../apps/sandbox/random";

export const NETWORKS = 60;

export const WAYS = ["one address", `${NETWORKS} networks`, "a valid key of their own"] as const;
export type Way = (typeof WAYS)[number];

/** @returns a function that returns the address of the stranger's next request, as a header has it */
export function strangersAddress(way: Way, random: Random): () => string {
  const second = random.int(20, 250);
  let at = 0;
  return () => (way === "one address" ? `198.${second}.0.1` : `198.${second}.${at++ % NETWORKS}.1`);
}
