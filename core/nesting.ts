/** How deeply a value nests, found without recursion: such a value may be made to exhaust the stack. */

/**
 * The most levels of a value that is written as JSON again. Ours and Airtable's have at most ten. Beyond some 25,000,
 * `JSON.stringify` takes seconds to find that it cannot.
 */
export const MAX_LEVELS = 10_000;

/** Whether lists and objects nest in more than `levels` levels. */
export function nestsDeeper(value: unknown, levels = MAX_LEVELS): boolean {
  let level = [value].filter(isNesting);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === levels) return true;
    level = level.flatMap((part) => Object.values(part).filter(isNesting));
  }
  return false;
}

function isNesting(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
