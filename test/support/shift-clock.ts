/**
 * Preloaded into a process (`BUN_OPTIONS="--preload …"`), it sets that process's clock off by CLOCK_SHIFT_MS: all that
 * tells the time of day. What only measures time (`performance.now`, timers) goes on as before.
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
