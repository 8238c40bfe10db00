/** Buffered metrics show what plain ones would, whenever they are read. */
import fc from "fast-check";
import { Counter, Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { BufferedCounter, BufferedHistogram } from "../../core/buffered-metrics";

const events = fc.array(
  fc.oneof(
    fc.constant("read" as const),
    fc.record({
      value: fc.constantFrom("sync", "client"),
      observed: fc.double({ min: 0, max: 5, noNaN: true }),
    }),
  ),
  { maxLength: 40 },
);

test("counts and observations are the same as without a buffer", async () => {
  await fc.assert(
    fc.asyncProperty(events, fc.constantFrom(1, 700), async (all, repeated) => {
      const [plain, buffered] = [new Registry(), new Registry()];
      const help = "help";
      const shared = { name: "waits", help, buckets: [0.5, 1, 2] };
      const counter = new Counter({ name: "n", help, labelNames: ["kind"], registers: [plain] });
      const waits = new Histogram({ ...shared, labelNames: ["kind"], registers: [plain] });
      const bufferedCounter = new BufferedCounter({ name: "n", help, label: "kind", registers: [buffered] });
      const bufferedWaits = new BufferedHistogram({ ...shared, label: "kind", registers: [buffered] });
      for (const event of [...all, "read" as const]) {
        if (event === "read") {
          expect(await buffered.metrics()).toBe(await plain.metrics());
          continue;
        }
        const { value, observed } = event;
        for (let time = 0; time < repeated; time++) {
          counter.inc({ kind: value });
          waits.observe({ kind: value }, observed);
          bufferedCounter.count(value);
          bufferedWaits.add(value, observed);
        }
      }
    }),
    { numRuns: 50 },
  );
});
