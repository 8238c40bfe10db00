/** The book of a proxy: the ledger's, and while that is away a window of its own. */
import { isBasetideError } from "../errors";
import type { Attendance } from "./attendance";
import type { Book } from "./book";
import type { QuotaClock } from "./clock";
import type { SharedBook } from "./control-plane";
import type { LocalWindow } from "./local-window";

/**
 * `shared`, and the local window for each question that the control plane does not answer.
 *
 * I4. The first question that it answers again shuts the key for a moment: others may still be on their own.
 */
export function standIn(
  shared: SharedBook,
  local: () => LocalWindow,
  attendance: Attendance,
  clock: QuotaClock,
): Book {
  const isLocal = new WeakSet<object>();
  let wasAway = false;
  let hasGranted = false;
  return {
    async take(withinMs, back, lateMs) {
      try {
        if (wasAway) await shared.reunite(hasGranted);
        wasAway = hasGranted = false;
        return await shared.take(withinMs, back, lateMs);
      } catch (error) {
        if (!isBasetideError(error, "control_unavailable") || attendance.share === 0) throw error;
        wasAway = true;
        const booking = await local().take(withinMs, back, lateMs);
        for (const place of booking.places) {
          if (!place) continue;
          isLocal.add(place);
          attendance.gaveOut(place.until);
          hasGranted = true;
        }
        return booking;
      }
    },
    isVoid: (place) => (isLocal.has(place) ? local().isVoid(place) : shared.isVoid(place).catch(() => false)),
    async wentLate(place) {
      if (!isLocal.has(place)) return shared.wentLate(place);
      attendance.gaveOut(clock.now());
      await local().wentLate(place);
    },
  };
}
