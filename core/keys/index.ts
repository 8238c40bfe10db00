/** API keys that the source has accepted for a base, and the queue that the others wait in. */
export { AcceptedKeys } from "./accepted-keys";
export { type IsOwnKey, ownKeys } from "./own-keys";
export { UnprovenQueue } from "./unproven-queue";
