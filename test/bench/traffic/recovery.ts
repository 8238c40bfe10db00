/**
 * Measures the recovery from one 429 that nothing on our side causes, in the middle of a Turbo sweep: the source
 * rejects the base's requests for 30 s. How soon does the sweep have its rate again, and is there another 429?
 */
import type { LogEntry } from "../../../apps/sandbox/request-log";
import type { Mode } from "./modes";

/** The 429 occurs after this part of the time. */
const REFUSED_AFTER = 0.25;
const RECOVERED_MS = 40_000;
/** The rate is averaged over this time, and has recovered at this share of the rate before. */
const RATE_OVER_MS = 5000;
const WHOLE_RATE = 0.9;

export const recovery: Mode = async ({ connect, source }, { durationMs }) => {
  const { base } = await connect({ turbo: true });
  const id = base.sourceBaseId;
  return async () => {
    const beforeMs = durationMs * REFUSED_AFTER;
    await Bun.sleep(beforeMs);
    const { atMs } = (await source.call("POST", "quota", { baseId: id, refuse: true })) as { atMs: number };
    await Bun.sleep(durationMs - beforeMs);
    const entries = (await source.call("GET", `log?base=${id}`)) as LogEntry[];
    const rate = entries.filter(({ arrivalMs }) => arrivalMs < atMs).length / beforeMs;
    const recoveredMs = timeToRate(entries, atMs, rate);
    const refused = entries.filter(({ status }) => status === 429);
    const [first] = refused;
    // Requests under way at the first 429 are rejected with it.
    const together = refused.filter(({ arrivalMs }) => first && arrivalMs < first.arrivalMs + RATE_OVER_MS);
    const later = refused.length - together.length;
    return {
      bases: [{ id, refusedOnPurpose: together.length }],
      figures: [
        {
          what: `rate is back after an unexpected 429 (${together.length} refused together)`,
          measured: recoveredMs === undefined ? "never" : `${(recoveredMs / 1000).toFixed(1)} s`,
          limit: `${RECOVERED_MS / 1000} s`,
          isWithin: recoveredMs !== undefined && recoveredMs <= RECOVERED_MS,
        },
        { what: "429 after that one", measured: String(later), limit: "0", isWithin: later === 0 },
      ],
    };
  };
};

/** From the 429 to the beginning of the first seconds at the earlier rate, ms. */
function timeToRate(entries: LogEntry[], refusedAtMs: number, rate: number): number | undefined {
  const arrivals = entries.filter(({ arrivalMs, status }) => arrivalMs > refusedAtMs && status !== 429);
  const enough = WHOLE_RATE * rate * RATE_OVER_MS;
  const begin = arrivals.find(({ arrivalMs: fromMs }) => {
    const within = arrivals.filter(
      ({ arrivalMs }) => arrivalMs >= fromMs && arrivalMs < fromMs + RATE_OVER_MS,
    );
    return within.length >= enough;
  });
  return begin && begin.arrivalMs - refusedAtMs;
}
