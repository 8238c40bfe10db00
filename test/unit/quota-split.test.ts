import { expect, test } from "vitest";
import { QuotaSplit } from "../../core/sync/quota-split";

/** A ledger that gives a place whenever the test says so. */
function split(besideEvery: number) {
  const asked: { share: number; give: () => void; refuse: (error: unknown) => void }[] = [];
  const stop = new AbortController();
  const ledger = {
    takeSync: (_key: string, share: number) =>
      new Promise<void>((give, refuse) => asked.push({ share, give, refuse })),
    takeClient: async () => {},
    block: async () => {},
    lift: async () => {},
    usage: async () => ({ month: "2026-11", sync: 0, client: 0 }),
    forget: async () => {},
  };
  const made = new QuotaSplit(ledger, besideEvery, stop.signal);
  const given: string[] = [];
  const take = (lane: "looks" | "beside", name = lane as string, signal = stop.signal, share = 3) =>
    made
      .lane(lane)
      .takeSync("key", share, signal)
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

test("while both wait, one place in six goes beside, and the looks have theirs in the order they came", async () => {
  const { given, take, give } = split(6);
  for (let look = 0; look < 20; look++) void take("looks", `look ${look}`);
  for (let page = 0; page < 4; page++) void take("beside");
  for (let place = 0; place < 18; place++) await give();
  const beside = given.flatMap((name, index) => (name === "beside" ? index : []));
  expect(beside).toEqual([5, 11, 17]);
  const looks = given.filter((name) => name !== "beside");
  expect(looks).toEqual(looks.map((_, index) => `look ${index}`));
});

test("a part that is no whole number is kept to in the long run", async () => {
  const { given, take, give } = split(5.8);
  for (let place = 0; place < 580; place++) {
    void take("looks");
    void take("beside");
  }
  for (let place = 0; place < 580; place++) await give();
  expect(given.filter((name) => name === "beside")).toHaveLength(100);
});

test("no place is left unused while either waits", async () => {
  const { given, take, give } = split(6);
  for (let page = 0; page < 3; page++) void take("beside");
  for (let place = 0; place < 3; place++) await give();
  expect(given).toEqual(["beside", "beside", "beside"]);
  void take("looks");
  await give();
  expect(given).toHaveLength(4);
});

test("the share is what was asked for last, and the part that goes beside can change", async () => {
  const { asked, given, made, take, give } = split(6);
  for (let look = 0; look < 3; look++) void take("looks");
  expect(asked[0]!.share).toBe(3);
  void take("looks", "looks", undefined, 5);
  await give();
  expect(asked[0]!.share).toBe(5);
  made.besideEvery = 2;
  void take("beside");
  await give();
  expect(given.at(-1)).toBe("beside");
});

test("who is called off leaves the line, and what the ledger refuses is refused to all who wait", async () => {
  const { asked, given, take, give } = split(6);
  const gone = new AbortController();
  const first = take("looks", "gone", gone.signal);
  const second = take("looks", "stays");
  gone.abort(new Error("called off"));
  await expect(first).rejects.toThrow("called off");
  await give();
  await second;
  expect(given).toEqual(["stays"]);
  const third = take("beside");
  asked.shift()!.refuse(new Error("ledger away"));
  await expect(third).rejects.toThrow("ledger away");
});
