import { expect, test } from "vitest";
import { QuotaSplit } from "../../core/sync/pacing";
import { until } from "../support/poll";

/** A limiter that grants a permit whenever the test says so. */
function split(every: number, gapMs = 0, holdMs = 0) {
  const asked: { share: number; give: () => void; refuse: (error: unknown) => void }[] = [];
  const stop = new AbortController();
  const limiter = {
    acquireSync: (_key: string, share: number) =>
      new Promise<undefined>((give, refuse) => asked.push({ share, give: () => give(undefined), refuse })),
    acquireClient: async () => undefined,
    acquireUnproven: async () => undefined,
    countServed: () => {},
    block: async () => {},
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

test("while both wait, one permit in six goes to the background, and the foreground's are in order of arrival", async () => {
  const { given, take, give } = split(6);
  for (let look = 0; look < 20; look++) void take("foreground", `look ${look}`);
  for (let page = 0; page < 4; page++) void take("background");
  for (let place = 0; place < 18; place++) await give();
  const background = given.flatMap((name, index) => (name === "background" ? index : []));
  expect(background).toEqual([5, 11, 17]);
  const looks = given.filter((name) => name !== "background");
  expect(looks).toEqual(looks.map((_, index) => `look ${index}`));
});

test("a fractional share is exact in the long run", async () => {
  const { given, take, give } = split(5.8);
  for (let place = 0; place < 580; place++) {
    void take("foreground");
    void take("background");
  }
  for (let place = 0; place < 580; place++) await give();
  expect(given.filter((name) => name === "background")).toHaveLength(100);
});

test("no permit is left unused while either waits", async () => {
  const { given, take, give } = split(6);
  for (let page = 0; page < 3; page++) void take("background");
  for (let place = 0; place < 3; place++) await give();
  expect(given).toEqual(["background", "background", "background"]);
  void take("foreground");
  await give();
  expect(given).toHaveLength(4);
});

test("the latest requested share counts, and half goes to the background while one request there is urgent", async () => {
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

test("a canceled request leaves the queue, and an error of the limiter is passed to all that wait", async () => {
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

test("the background keeps its pace, lets all others pass, and need not wait while it is urgent", async () => {
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
  // Waiting requests notice it within a second.
  await until(() => asked.length > 0, { what: "a permit is requested" });
  await give();
  await give();
  expect(given.slice(11)).toEqual(["background", "background"]);
});

test("the background gets a permit as soon as its pace allows", async () => {
  const { asked, given, take, give } = split(6, 50);
  for (let page = 0; page < 3; page++) void take("background");
  const from = performance.now();
  for (let page = 0; page < 3; page++) {
    await until(() => asked.length > 0, { what: "a permit is requested", intervalMs: 1 });
    await give();
  }
  expect(given).toHaveLength(3);
  expect(performance.now() - from).toBeGreaterThanOrEqual(98);
});

test("spare permits are held back for a while after one in the foreground, except the background's own share", async () => {
  const { asked, given, take, give } = split(3, 0, 200);
  void take("foreground");
  const from = performance.now();
  await give();
  void take("background");
  expect(asked).toHaveLength(0);
  await until(() => asked.length > 0, { what: "a permit is requested", intervalMs: 1 });
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
