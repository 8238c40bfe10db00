/** Waits, time-outs, aborts, notifiers and task groups. */
export { type LinkedAbort, linkedAbort, wait } from "./abort";
export { jittered } from "./backoff";
export { Notifier } from "./notifier";
export { TaskGroup } from "./task-group";
export { withTimeout } from "./timeout";
export { waitCoarsely } from "./wheel";
