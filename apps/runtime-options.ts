/**
 * Options of the runtime for some roles only. The runtime reads them from the environment when a process starts. Those of all
 * roles are in the Dockerfile; "Memory of the runtime" in docs/configuration.md explains both.
 */

/**
 * By role. Others have none.
 *
 * A worker's heap is large, and no client waits for it. So it grows less before all of it is collected, and collections are
 * not divided into steps between which the program goes on: that takes less CPU and memory, and would make the slowest
 * answers of a proxy take five times as long. What the most thorough compiler saves it is less than the memory that this takes. A
 * console answers a few requests a second, and does without both compilers that optimize.
 */
export const ROLE_OPTIONS: Record<string, Record<string, string>> = {
  worker: { BUN_JSC_heapGrowthMaxIncrease: "0.7", BUN_JSC_useConcurrentGC: "0", BUN_JSC_useFTLJIT: "0" },
  console: { BUN_JSC_useDFGJIT: "0", BUN_JSC_forceMiniVMMode: "1" },
};

/** How many times as long a function runs in the interpreter before it is compiled, while a role starts. */
const START_RELUCTANCE = 100;

/**
 * Leaves what runs only while a role starts to the interpreter: compiling it takes 2 MB of a worker or a proxy, and 7 MB of a
 * console. `freeStart` of core/process.ts ends that.
 */
export function interpretStart(): void {
  Bun.unsafe.setJITPolicy(START_RELUCTANCE);
}

/**
 * Restarts this process with these options, if one of them is not set; what is set stays. The process keeps its id and its
 * arguments. Where the system cannot do that (Windows), it goes on without them.
 */
export function ensureOptions(options: Record<string, string>): void {
  if (Object.keys(options).every((name) => process.env[name] !== undefined)) return;
  const words = [...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, [process.argv0, ...words], { ...options, ...process.env });
}
