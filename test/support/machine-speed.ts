/** How slow this machine is at what tests do most: they start processes, databases and browsers, which take new memory. */

const PAGE_BYTES = 4096;
const PAGES = 4096;
/** The time for a new page of memory on a slow machine, µs. It was 20 where tests exceeded their times. */
const SLOW_PAGE_US = 5;

/** Returns whether new memory is slow. Takes a few milliseconds, on a slow machine a tenth of a second. */
export function isSlowMachine(): boolean {
  const memory = new Uint8Array(PAGES * PAGE_BYTES);
  const from = performance.now();
  for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = 1;
  return ((performance.now() - from) * 1000) / PAGES > SLOW_PAGE_US;
}
