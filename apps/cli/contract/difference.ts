/** Compares values of the file with those of the account; lists are sets. */

/** The given values that differ from the existing ones. */
export function differing<Given extends object>(given: Given, existing: object): Partial<Given> {
  const known = existing as Record<string, unknown>;
  const changed = Object.entries(given).filter(
    ([name, value]) => value !== undefined && shown(value) !== shown(known[name]),
  );
  return Object.fromEntries(changed) as Partial<Given>;
}

/** `live: false -> true`, for each changed value. */
export function changeDetails(change: object, existing: object, prefix = ""): string[] {
  const known = existing as Record<string, unknown>;
  return Object.entries(change).map(
    ([name, value]) => `${prefix}${name}: ${shown(known[name])} -> ${shown(value)}`,
  );
}

/** A value as people read it; the same for lists of the same elements. */
export function shown(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? [...value].sort() : (value ?? null));
}
