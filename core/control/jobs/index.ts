/** Jobs and requests of bases, and what is quarantined because it ended processes. */
export { forgetJobs, untilReleased } from "./jobs-of-base";
export { type Quarantine, quarantine, REPAIR_CLAIMS, retryQuarantined } from "./quarantine";
export { requestCatchUp, requestRepairs, settleCatchUp } from "./repair-requests";
export { attempt, forgetTask, type QuarantinedTask } from "./task-attempts";
