/** When a state of a base is late, and when it is bad. */

/**
 * How long after it was due something is not yet late: a worker may be restarting, a lease moving, or the source have asked
 * for a pause of 30 s.
 */
export const GRACE_MS = 60_000;
/** A problem that lasts this long is red. */
export const RED_MS = 5 * 60_000;
/** How many times longer than usual a sync takes, or is not completed, when it is slow, and when that is bad. */
export const YELLOW_FACTOR = 2;
export const RED_FACTOR = 5;
