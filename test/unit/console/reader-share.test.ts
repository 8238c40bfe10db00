import fc from "fast-check";
import { expect, test } from "vitest";
import { inTurn } from "../../../core/data-browser/account-turns";
import { isBasetideError } from "../../../core/errors";
import { READER_CONNECTIONS } from "../../../core/replica";
import { inSampleTurn, withRunSlot } from "../../../core/sql-editor";

/** By the budget of connections that they use: `console` and `query` of `ServerUse`. */
const ways = {
  rows: { use: "console", read: inTurn },
  query: { use: "query", read: withRunSlot },
  sample: { use: "query", read: inSampleTurn },
};

const read = fc.record({
  account: fc.constantFrom("one", "two", "three"),
  way: fc.constantFrom(...(Object.keys(ways) as (keyof typeof ways)[])),
  ticks: fc.integer({ min: 0, max: 5 }),
  isFailing: fc.boolean(),
});

test("I8: whatever an account reads at once, it uses at most half of the connections to a server", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(read, { maxLength: 30 }), async (reads) => {
      const used = new Map<string, number>();
      const count = (name: string, change: number) => {
        used.set(name, (used.get(name) ?? 0) + change);
        return used.get(name)!;
      };
      let most = 0;
      const results = await Promise.allSettled(
        reads.map(({ account, way, ticks, isFailing }) =>
          ways[way].read(account, async () => {
            const name = `${account} ${ways[way].use}`;
            most = Math.max(most, count(name, 1));
            for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
            count(name, -1);
            if (isFailing) throw new Error("failed");
          }),
        ),
      );
      expect(most).toBeLessThanOrEqual(READER_CONNECTIONS / 2);
      // Only the editor refuses; everything else has run.
      for (const [index, result] of results.entries()) {
        if (result.status === "fulfilled") continue;
        const { way, isFailing } = reads[index]!;
        const isRefused = way === "query" && isBasetideError(result.reason, "conflict");
        expect(isRefused || (isFailing && result.reason.message === "failed")).toBe(true);
      }
      expect([...used.values()].every((count) => count === 0)).toBe(true);
    }),
  );
});
