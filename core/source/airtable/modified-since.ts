/**
 * The formula that selects modified records.
 *
 * `LAST_MODIFIED_TIME()` is the last change of a cell that is not computed, by a person, an automation or the API. It
 * may be blank for a record that was created empty, duplicated or imported, hence `CREATED_TIME()`. Neither changes for
 * a computed cell, a renamed choice, a retyped field or a comment.
 */

/** Record times have a resolution of one second: a change counts as old as the start of its second. */
const GRAIN_MS = 1000;

/** Returns a formula for records changed or created at `sinceMs` or later. */
export function modifiedSince(sinceMs: number): string {
  // IS_AFTER is strict.
  const since = new Date(Math.floor(sinceMs / GRAIN_MS) * GRAIN_MS - 1).toISOString();
  return `OR(IS_AFTER(LAST_MODIFIED_TIME(), '${since}'), IS_AFTER(CREATED_TIME(), '${since}'))`;
}
