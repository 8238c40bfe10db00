/**
 * Runs in a thread of its own: measures how long processes take to answer `/healthz`, minus the delay that the machine
 * caused to this thread.
 */
declare const self: Worker;

const EVERY_MS = 50;
const NOTABLE_MS = 400;

export interface Freezes {
  /** The longest wait for an answer, ms, by the process's name. */
  longest: Record<string, number>;
  asked: number;
}

const longest: Record<string, number> = {};
let asked = 0;
/** The delays of this thread, with their times. */
const lateness: { at: number; ms: number }[] = [];
let ticked = performance.now();
setInterval(() => {
  const now = performance.now();
  if (now - ticked > 2 * EVERY_MS) lateness.push({ at: now, ms: now - ticked - EVERY_MS });
  ticked = now;
}, EVERY_MS);

self.onmessage = ({ data }: MessageEvent<{ watch?: Record<string, string>; take?: true }>) => {
  for (const [name, url] of Object.entries(data.watch ?? {})) void watch(name, url);
  if (data.take) self.postMessage({ longest, asked } satisfies Freezes);
};

async function watch(name: string, url: string): Promise<void> {
  longest[name] ??= 0;
  for (;;) {
    const from = performance.now();
    await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(30_000) }).catch(() => undefined);
    asked += 1;
    const own = lateness.filter(({ at }) => at > from).reduce((sum, { ms }) => sum + ms, 0);
    const frozenMs = performance.now() - from - own;
    if (frozenMs > NOTABLE_MS) self.postMessage({ frozen: name, ms: Math.round(frozenMs) });
    longest[name] = Math.max(longest[name]!, performance.now() - from - own);
    await Bun.sleep(EVERY_MS);
  }
}
