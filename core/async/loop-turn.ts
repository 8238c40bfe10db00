/**
 * Turns of the event loop for the parts of large bodies. Of many bodies that arrive at once, all parts that are there would
 * be copied before anything else is done; this way, one is.
 */
import { Turns } from "./turns";

const parts = new Turns(1);

/** Resolves in a turn of the event loop in which no other part is taken. Callers wait in order. */
export function loopTurn(): Promise<void> {
  return parts.run(parts, () => new Promise((resolve) => setImmediate(resolve)));
}
