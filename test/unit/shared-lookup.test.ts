/** Look-ups that requests share: what each finds, and how many statements they cost. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { SharedLookup } from "../../core/async";

/** Look-ups that end when the test says so. */
function heldLookups() {
  const running: { keys: string[]; end: (error?: Error) => void }[] = [];
  const lookup = new SharedLookup<string>(async (keys) => {
    const held = Promise.withResolvers<void>();
    running.push({ keys, end: (error) => (error ? held.reject(error) : held.resolve()) });
    await held.promise;
    return new Map(keys.filter((key) => key.startsWith("k")).map((key) => [key, `value of ${key}`]));
  });
  return { lookup, running };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("whatever is asked for at whatever time, one look-up runs at a time, and each caller gets its key's value", async () => {
  const keys = fc.array(fc.oneof(fc.constantFrom("k1", "k2", "x1"), fc.string()), {
    minLength: 1,
    maxLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(keys, { minLength: 1, maxLength: 5 }), async (bursts) => {
      const { lookup, running } = heldLookups();
      const asked: [key: string, found: Promise<string | undefined>][] = [];
      for (const burst of bursts) {
        for (const key of burst) asked.push([key, lookup.get(key)]);
        await turn();
        expect(running.length).toBe(1);
      }
      // The first burst's look-up is under way; all later bursts share the second.
      running[0]!.end();
      await turn();
      expect(running.length).toBe(bursts.length > 1 ? 2 : 1);
      running[1]?.end();
      for (const [key, found] of asked)
        expect(await found).toBe(key.startsWith("k") ? `value of ${key}` : undefined);
    }),
    { numRuns: 50 },
  );
});

test("a look-up that fails fails for those that share it, and not for later ones", async () => {
  const { lookup, running } = heldLookups();
  const [one, other] = [lookup.get("k1"), lookup.get("k2")];
  const both = Promise.allSettled([one, other]);
  await turn();
  running[0]!.end(new Error("broken"));
  expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const later = lookup.get("k1");
  await turn();
  running[1]!.end();
  expect(await later).toBe("value of k1");
});
