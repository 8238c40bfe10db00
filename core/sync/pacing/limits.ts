/** Numbers that several parts of sync share, so that each was chosen once. */

/**
 * How often a step is tried in a row that something else may overtake or prevent for a moment: a changed schema, a lock,
 * a lost iterator, a failed request.
 */
export const TRIES = 5;
/** The same where each attempt is a step forward, as when one table after another changes. */
export const MANY_TRIES = 20;
/**
 * What due work depends on changes by itself: without a notification, it is looked for this often, ms. So the feed is read
 * because of notifications, and locked tables are tried again.
 */
export const TICK_MS = 250;
/** The shortest interval between two rounds of the same work, ms: sweeps, polls, cycles. */
export const SHORTEST_MS = 1000;
/** How long one part of the work may keep others waiting, ms: a silent table, a locked one, a slow server. */
export const MOST_PATIENCE_MS = 5000;
/** A base with nothing to do for this long is at rest: it keeps no connection. So does a lease that has just begun, ms. */
export const REST_MS = 10_000;
/** What an object or a query of the customer's prevents is tried again, and reported, after this time, ms. */
export const OBSTACLE_MS = 30_000;
/**
 * A base keeps its place for this long while others wait for one. Its lease is renewed as often, ms: what is done to an
 * idle table is named within a minute.
 */
export const TURN_MS = 50_000;
/** What happened within this time is recent, ms: records that polls go back for, webhooks that were replaced. */
export const RECENT_MS = 10 * 60_000;
/** What nothing hints at is done this often in any case, ms: to check a webhook, to compare a base at rest. */
export const UNPROMPTED_MS = 6 * 3600_000;
/** The same for what costs more: to check the schema of a base at rest, to compare all rows with their records, ms. */
export const TWICE_A_DAY_MS = 12 * 3600_000;
