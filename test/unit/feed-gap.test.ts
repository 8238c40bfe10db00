/** Which sweep closes a feed gap, and what the server is told about it. */
import { expect, test } from "vitest";
import { FeedGap } from "../../core/sync/modes/live/feed-gap";

const MINUTE_AGO = new Date(Date.now() - 60_000);
const NOW = new Date();
const later = () => performance.now() + 1;

/** The server's side: the closes that it was told about. */
function server() {
  const told: (Date | null)[] = [];
  return { told, note: async (since: Date | null) => void told.push(since) };
}

test("only a sweep that began after a gap closes it", async () => {
  const gap = new FeedGap();
  const { told, note } = server();
  gap.set(MINUTE_AGO, 60_000);
  await gap.close(performance.now() - 61_000, note);
  expect([gap.since, told]).toEqual([MINUTE_AGO, []]);
  await gap.close(performance.now() - 59_000, note);
  expect([gap.since, told]).toEqual([null, [MINUTE_AGO]]);
});

test("a gap that grows is open at once, and from the server's time on when that is known", async () => {
  const gap = new FeedGap();
  const { told, note } = server();
  const word = Promise.withResolvers<Date | null>();
  const growing = gap.grow(() => word.promise);
  expect(gap.since).not.toBeNull();
  await gap.close(performance.now() - 1000, note);
  expect(told).toEqual([]);
  word.resolve(NOW);
  await growing;
  await gap.close(later(), note);
  expect([gap.since, told]).toEqual([null, [NOW]]);
});

test("if the server does not know that a gap grew, it is asked to close what it knew before", async () => {
  const gap = new FeedGap();
  const { told, note } = server();
  gap.set(MINUTE_AGO, 60_000);
  await expect(gap.grow(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  await gap.close(performance.now() - 1000, note);
  expect([gap.since, told]).toEqual([MINUTE_AGO, []]);
  await gap.close(later(), note);
  expect([gap.since, told]).toEqual([null, [MINUTE_AGO]]);
});

test("a gap that is found while another is closed stays, and so does one whose closing is not recorded", async () => {
  const gap = new FeedGap();
  gap.set(MINUTE_AGO, 60_000);
  await gap.close(later(), async () => gap.set(NOW));
  expect(gap.since).toEqual(NOW);
  await expect(gap.close(later(), () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(gap.since).toEqual(NOW);
});
