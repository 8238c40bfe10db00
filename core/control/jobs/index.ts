/** Jobs and requests of bases, and the quarantine of those that crash processes. */
export { forgetJobs, untilReleased } from "./jobs-of-base";
export { type Quarantine, quarantine, retryQuarantined } from "./quarantine";
export { requestCatchUp, requestRepairs, settleCatchUp } from "./repair-requests";
export { attempt, forgetTask, QUARANTINED_AFTER, type QuarantinedTask } from "./task-attempts";
