/** How many pages are parsed and written at once: for a server, and for a base. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { inWriteTurn } from "../../core/sync/engine/write-turns";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** Starts pages of these bases, which are written when `end` is called; counts those that are being written. */
function pages(bases: { server: string }[]) {
  const ends: (() => void)[] = [];
  const state = { running: 0, most: 0 };
  const written = bases.map((base) =>
    inWriteTurn(base, async () => {
      state.most = Math.max(state.most, ++state.running);
      await new Promise<void>((resolve) => ends.push(resolve));
      state.running--;
    }),
  );
  return {
    state,
    /** Writes them all. */
    async end() {
      for (let ended = 0; ended < bases.length; ) {
        const begun = ends.slice(ended);
        ended += begun.length;
        for (const end of begun) end();
        await new Promise(setImmediate);
      }
      await Promise.all(written);
    },
  };
}

const basesOf = (server: string, count: number) => Array.from({ length: count }, () => ({ server }));
const begun = () => new Promise(setImmediate);

test("pages of all bases of a server take turns, and those of another server do not wait for them", async () => {
  const [slow, other] = [pages(basesOf("slow:5432", 100)), pages(basesOf("other:5432", 5))];
  await begun();
  expect([slow.state.running, other.state.running]).toEqual([32, 5]);
  await Promise.all([slow.end(), other.end()]);
  expect(slow.state.most).toBe(32);
});

test("a base with many locked tables takes two turns, and passes them on after five seconds", async () => {
  const base = { server: "shared:5432" };
  const [locked, behind] = [pages(Array(2).fill(base)), pages(Array(38).fill(base))];
  await begun();
  expect([locked.state.running, behind.state.running]).toEqual([2, 0]);
  const others = pages(basesOf(base.server, 60));
  await begun();
  expect(others.state.running).toBe(30);
  await vi.advanceTimersByTimeAsync(4999);
  expect(others.state.running).toBe(30);
  await vi.advanceTimersByTimeAsync(1);
  expect([locked.state.running, others.state.running]).toEqual([2, 60]);
  const later = pages(basesOf(base.server, 40));
  await begun();
  expect(later.state.running).toBe(2);
  // Their turns were passed on, and are not passed on again. The base's next two wait like all others.
  await locked.end();
  expect([behind.state.running, later.state.running]).toEqual([0, 2]);
  await Promise.all([behind.end(), others.end(), later.end()]);
  expect(behind.state.most).toBe(2);
});

test("a page that cannot be written leaves its turn to the next", async () => {
  const failing = basesOf("failing:5432", 40).map((base) =>
    inWriteTurn(base, () => Promise.reject(new Error("full"))),
  );
  const results = await Promise.allSettled(failing);
  expect(results.map(({ status }) => status)).toEqual(Array(40).fill("rejected"));
  expect(await inWriteTurn({ server: "failing:5432" }, async () => "written")).toBe("written");
});
