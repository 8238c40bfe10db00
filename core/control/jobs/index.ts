/** Jobs and requests of bases, and what is quarantined because it ended processes. */
export { requestCatchUp, settleCatchUp } from "./catch-ups";
export { forgetJobs, untilNotHeld } from "./jobs-of-base";
export { type Quarantine, quarantine, REPAIR_CLAIMS, retryQuarantined } from "./quarantine";
export { requestRepairs } from "./repair-requests";
export { attempt, forgetTask, type QuarantinedTask } from "./task-attempts";
