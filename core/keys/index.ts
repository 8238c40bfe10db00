/** Accepted API keys, and the queue for requests with unproven keys. */
export { CONTROL_PATIENCE_MS, LOOKUP_AGE_MS } from "./accepted-key-store";
export { AcceptedKeys } from "./accepted-keys";
export { firstLetters } from "./first-letters";
export { type IsOwnKey, ownKeys } from "./own-keys";
export { UnprovenQueue } from "./unproven-queue";
