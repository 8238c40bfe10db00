/** The options of the runtime that processes have in the image, as in the Dockerfile and in apps/main.ts. */
import { ROLE_OPTIONS } from "../../apps/runtime-options";

/** Of all roles. */
export const IMAGE_ENVIRONMENT = {
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "10000",
  MIMALLOC_PURGE_DELAY: "0",
  BUN_GC_TIMER_INTERVAL: "4000",
};

export const WORKER_ENVIRONMENT = { ...IMAGE_ENVIRONMENT, ...ROLE_OPTIONS.worker };
