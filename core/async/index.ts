/** Waits, time-outs, aborts, notifiers and task groups. */
export { jittered, type LinkedAbort, linkedAbort, wait } from "./abort";
export { LONGEST_TIMER_MS, Notifier } from "./notifier";
export { offAbort, onAbort } from "./on-abort";
export { repeat } from "./repeat";
export { SharedLookup } from "./shared-lookup";
export { TaskGroup } from "./task-group";
export { withTimeout } from "./timeout";
export { Turns } from "./turns";
