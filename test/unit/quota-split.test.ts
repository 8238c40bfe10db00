import { expect, test } from "vitest";
import { QuotaSplit } from "../../core/sync/pacing";
import { until } from "../support/poll";

/** A ledger that gives a reservation whenever the test says so. */
function split(every: number, gapMs = 0, holdMs = 0) {
  const asked: { share: number; give: () => void; refuse: (error: unknown) => void }[] = [];
  const stop = new AbortController();
  const limiter = {
    acquireSync: (_key: string, share: number) =>
      new Promise<undefined>((give, refuse) => asked.push({ share, give: () => give(undefined), refuse })),
    acquireClient: async () => undefined,
    acquireUnproven: async () => undefined,
    countServed: async () => {},
    block: async () => {},
    lift: async () => {},
    usage: async () => ({ month: "2026-11", sync: 0, client: 0 }),
    forget: async () => {},
    close: async () => {},
  };
  const made = new QuotaSplit(limiter, () => ({ every, gapMs, holdMs }), stop.signal);
  const given: string[] = [];
  const take = (
    priority: "foreground" | "background",
    name = priority as string,
    signal = stop.signal,
    share = 3,
  ) =>
    made
      .limiterFor(priority)
      .acquireSync("key", share, signal)
      .then(() => void given.push(name));
  return {
    asked,
    given,
    made,
    take,
    async give() {
      asked.shift()!.give();
      await Bun.sleep(0);
    },
  };
}

test("while both wait, one reservation in six goes beside, and those in front have theirs in the order they came", async () => {
  const { given, take, give } = split(6);
  for (let look = 0; look < 20; look++) void take("foreground", `look ${look}`);
  for (let page = 0; page < 4; page++) void take("background");
  for (let place = 0; place < 18; place++) await give();
  const background = given.flatMap((name, index) => (name === "background" ? index : []));
  expect(background).toEqual([5, 11, 17]);
  const looks = given.filter((name) => name !== "background");
  expect(looks).toEqual(looks.map((_, index) => `look ${index}`));
});

test("a part that is no whole number is kept to in the long run", async () => {
  const { given, take, give } = split(5.8);
  for (let place = 0; place < 580; place++) {
    void take("foreground");
    void take("background");
  }
  for (let place = 0; place < 580; place++) await give();
  expect(given.filter((name) => name === "background")).toHaveLength(100);
});

test("no reservation is left unused while either waits", async () => {
  const { given, take, give } = split(6);
  for (let page = 0; page < 3; page++) void take("background");
  for (let place = 0; place < 3; place++) await give();
  expect(given).toEqual(["background", "background", "background"]);
  void take("foreground");
  await give();
  expect(given).toHaveLength(4);
});

test("the share is what was asked for last, and half goes beside while somebody hurries", async () => {
  const { asked, given, made, take, give } = split(6);
  for (let look = 0; look < 3; look++) void take("foreground");
  expect(asked[0]!.share).toBe(3);
  void take("foreground", "foreground", undefined, 5);
  await give();
  expect(asked[0]!.share).toBe(5);
  made.hurry(true);
  void take("background");
  await give();
  expect(given.at(-1)).toBe("background");
});

test("who is called off leaves the line, and what the ledger refuses is refused to all who wait", async () => {
  const { asked, given, take, give } = split(6);
  const gone = new AbortController();
  const first = take("foreground", "gone", gone.signal);
  const second = take("foreground", "stays");
  gone.abort(new Error("called off"));
  await expect(first).rejects.toThrow("called off");
  await give();
  await second;
  expect(given).toEqual(["stays"]);
  const third = take("background");
  asked.shift()!.refuse(new Error("ledger away"));
  await expect(third).rejects.toThrow("ledger away");
});

test("what is beside keeps its pace, lets all others pass, and need not wait when somebody hurries", async () => {
  const { asked, given, made, take, give } = split(6, 60_000);
  for (let page = 0; page < 3; page++) void take("background");
  await give();
  expect(given).toEqual(["background"]);
  expect(asked).toHaveLength(0);
  for (let call = 0; call < 10; call++) void take("foreground");
  for (let place = 0; place < 10; place++) await give();
  expect(given.slice(1)).toEqual(Array(10).fill("foreground"));
  expect(asked).toHaveLength(0);
  made.hurry(true);
  // Those who wait look at it within a second.
  await until(() => asked.length > 0, { what: "a place is asked for" });
  await give();
  await give();
  expect(given.slice(11)).toEqual(["background", "background"]);
});

test("what is beside gets a reservation as soon as its pace allows", async () => {
  const { asked, given, take, give } = split(6, 50);
  for (let page = 0; page < 3; page++) void take("background");
  const from = performance.now();
  for (let page = 0; page < 3; page++) {
    await until(() => asked.length > 0, { what: "a place is asked for", intervalMs: 1 });
    await give();
  }
  expect(given).toHaveLength(3);
  expect(performance.now() - from).toBeGreaterThanOrEqual(98);
});

test("what is left over is held back for a while after a reservation in front, but for the part that goes beside anyway", async () => {
  const { asked, given, take, give } = split(3, 0, 200);
  void take("foreground");
  await give();
  const from = performance.now();
  void take("background");
  expect(asked).toHaveLength(0);
  await until(() => asked.length > 0, { what: "a place is asked for", intervalMs: 1 });
  expect(performance.now() - from).toBeGreaterThanOrEqual(190);
  await give();
  expect(given).toEqual(["foreground", "background"]);
  for (let call = 0; call < 2; call++) {
    void take("foreground");
    await give();
  }
  void take("background");
  expect(asked).toHaveLength(1);
});
