/** Waiting, time-outs, aborts and groups of tasks. */
export { type LinkedAbort, linkedAbort, wait } from "./abort";
export { jittered } from "./backoff";
export { Bell } from "./notifier";
export { Fate } from "./task-group";
export { within } from "./timeout";
