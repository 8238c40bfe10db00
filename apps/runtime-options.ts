/**
 * Options of the runtime for one role only. It reads them from the environment when a process starts. Those of all roles are
 * in the Dockerfile; docs/configuration.md explains both, "Memory of the runtime".
 */

/**
 * A worker's heap is large, and no client waits for it. So it grows less before all of it is collected, and collections are
 * not divided into steps between which the program goes on: that takes less CPU and memory, and would make the slowest
 * answers of a proxy take five times as long.
 */
export const WORKER_OPTIONS = { BUN_JSC_heapGrowthMaxIncrease: "0.7", BUN_JSC_useConcurrentGC: "0" };

/** Starts this process anew with these options, under its id, unless each of them is already set. */
export function ensureOptions(options: Record<string, string>): void {
  if (Object.keys(options).every((name) => process.env[name] !== undefined)) return;
  const words = [...process.execArgv, ...process.argv.slice(1)];
  process.execve!(process.execPath, [process.argv0, ...words], { ...options, ...process.env });
}
