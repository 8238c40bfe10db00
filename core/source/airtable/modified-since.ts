/**
 * The formula that asks for what was modified.
 *
 * `LAST_MODIFIED_TIME()` is the last change of a cell that is not computed, by a person, an automation or the API. It
 * may be blank for a record that was created empty, duplicated or imported, hence `CREATED_TIME()`. Neither moves for
 * a computed cell, a renamed choice, a retyped field or a comment.
 */

/** Times of records were seen in whole seconds: a change is taken for as old as its second. */
const GRAIN_MS = 1000;

/** Records changed or created at `sinceMs` or later, as a formula. */
export function modifiedSince(sinceMs: number): string {
  // IS_AFTER is strict.
  const since = new Date(Math.floor(sinceMs / GRAIN_MS) * GRAIN_MS - 1).toISOString();
  return `OR(IS_AFTER(LAST_MODIFIED_TIME(), '${since}'), IS_AFTER(CREATED_TIME(), '${since}'))`;
}
