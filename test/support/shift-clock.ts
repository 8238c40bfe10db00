/**
 * Preloaded into a process (`BUN_OPTIONS="--preload …"`), shifts the process's time of day by CLOCK_SHIFT_MS. Functions
 * that only measure durations (`performance.now`, timers) are not affected.
 */

const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0);
const RealDate = Date;
const now = () => RealDate.now() + shiftMs;
const shiftedOrigin = performance.timeOrigin + shiftMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length > 0 ? given : [now()], newTarget) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name, target)),
});
Object.defineProperty(performance, "timeOrigin", { get: () => shiftedOrigin });

export {};
