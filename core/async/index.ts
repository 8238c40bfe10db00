/** Waiting, time-outs, aborts and groups of tasks. */
export { type LinkedAbort, linkedAbort } from "./abort";
export { Fate } from "./task-group";
export { within } from "./timeout";
export { wait } from "./wait";
