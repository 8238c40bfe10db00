/** The options of the runtime that a worker has in the image. */
import { WORKER_OPTIONS } from "../../apps/runtime-options";

/** As in the Dockerfile and in apps/main.ts. */
export const WORKER_ENVIRONMENT = {
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "10000",
  BUN_GC_TIMER_INTERVAL: "4000",
  ...WORKER_OPTIONS,
};
