/** Which clients without a proven key are served, and which may wait. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { UnprovenQueue } from "../../core/keys";
import type { Entrance } from "../../core/keys/unproven-queue";

const never = new AbortController().signal;
const runs = { numRuns: Number(process.env.FUZZ_RUNS ?? 1) * 100 };

const step = fc.record({
  base: fc.integer({ min: 0, max: 3 }),
  key: fc.integer({ min: 0, max: 4 }),
  network: fc.integer({ min: 0, max: 4 }),
  /** Which of the served ones leaves afterwards; none if there are fewer. */
  leaves: fc.integer({ min: 0, max: 9 }),
  decides: fc.boolean(),
});

test("U1: never two at a time for a base and key, or for a base and network, nor more than the limits, whatever arrives", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const queue = new UnprovenQueue({ most: 12, mostPerNetwork: 5, servedPerBase: 2, perMinute: 1000 });
      const served: { base: string; key: string; network: string; leave(): void }[] = [];
      let settled = 0;
      for (const { base, key, network, leaves, decides } of steps) {
        const [sourceBaseId, keyHash] = [`app${base}`, `${base} ${key}`];
        void queue
          .enter({ sourceBaseId, keyHash, network: `n${network}` }, () => never)
          .then((entrance) => {
            settled++;
            if (entrance.kind === "served")
              served.push({
                base: sourceBaseId,
                key: keyHash,
                network: `n${network}`,
                leave: entrance.leave,
              });
          });
        await Promise.resolve();
        if (decides) queue.decided(sourceBaseId, keyHash);
        served.splice(leaves, 1)[0]?.leave();
        await Promise.resolve();
        await Promise.resolve();
        expect(queue.size).toBeLessThanOrEqual(12);
        for (const by of [
          ({ base, key }: Served) => `${base}${key}`,
          (one: Served) => `${one.base} ${one.network}`,
        ])
          expect(new Set(served.map(by)).size).toBe(served.length);
        for (const one of served) {
          expect(served.filter((other) => other.base === one.base).length).toBeLessThanOrEqual(2);
        }
      }
      // None is forgotten.
      while (served.length > 0) {
        served.shift()!.leave();
        await Promise.resolve();
        await Promise.resolve();
      }
      expect([queue.size, settled]).toEqual([0, steps.length]);
    }),
    runs,
  );
});
type Served = { base: string; key: string; network: string };

/** The result of each admission; undefined while it waits. */
function entering(queue: UnprovenQueue) {
  const ends = new Map<string, Entrance["kind"]>();
  const leaves = new Map<string, (isRefused?: boolean) => void>();
  return {
    ends,
    leaves,
    async enter(name: string, network: string, sourceBaseId = "appA", keyHash = name) {
      void queue
        .enter({ sourceBaseId, keyHash, network }, () => never)
        .then((entrance) => {
          ends.set(name, entrance.kind);
          if (entrance.kind === "served") leaves.set(name, entrance.leave);
        });
      await Promise.resolve();
      await Promise.resolve();
    },
  };
}

test("U2: a network that fills the queue makes room for another, and not for itself", async () => {
  const queue = new UnprovenQueue({ most: 6, mostPerNetwork: 6, servedPerBase: 1 });
  const { ends, enter } = entering(queue);
  for (let index = 0; index < 7; index++) await enter(`loud ${index}`, "loud");
  expect(ends.get("loud 6")).toBe("full");
  await enter("quiet", "quiet");
  expect([ends.get("quiet"), ends.get("loud 5"), queue.size]).toEqual([undefined, "full", 6]);
});

test("U3: a network that waits for the first time goes before one that was served before", async () => {
  const queue = new UnprovenQueue({ servedPerBase: 1 });
  const { ends, leaves, enter } = entering(queue);
  for (let index = 0; index < 5; index++) await enter(`loud ${index}`, "loud");
  await enter("quiet", "quiet");
  leaves.get("loud 0")!();
  await Promise.resolve();
  expect([ends.get("quiet"), ends.get("loud 1")]).toEqual(["served", undefined]);
});

test("requests of a key that was decided, and of clients that have disconnected, no longer wait", async () => {
  const queue = new UnprovenQueue();
  const { ends, enter } = entering(queue);
  await enter("first", "a", "appA", "key");
  await enter("second", "b", "appA", "key");
  const client = new AbortController();
  const gone = queue.enter({ sourceBaseId: "appA", keyHash: "key", network: "c" }, () => client.signal);
  client.abort(new Error("gone"));
  await expect(gone).rejects.toThrow("gone");
  queue.decided("appA", "key");
  await Promise.resolve();
  expect([ends.get("first"), ends.get("second"), queue.size]).toEqual(["served", "decided", 1]);
});

test("a network may try only so often in a minute, whatever the result", () => {
  const queue = new UnprovenQueue({ perMinute: 3 });
  expect(["a", "a", "a", "a", "b"].map((network) => queue.arrive(network))).toEqual([
    true,
    true,
    true,
    false,
    true,
  ]);
});

const sixty = Array.from({ length: 60 }, (_, index) => index);
const addresses = {
  "60 /64s of a /56": (index: number) => `2001:db8:0:${index.toString(16)}::/64`,
  "60 /48s": (index: number) => `2001:db8:${index.toString(16)}:1::/64`,
  "60 IPv4 addresses": (index: number) => `192.0.2.${index}`,
  "60 IPv4 networks": (index: number) => `192.0.${index}.1`,
  "60 keys from an address that may be a reverse proxy's": (index: number) => `127.0.2.1 key${index}`,
};

test.for(Object.entries(addresses))(
  "U2, U3: %s that fill the queue of a base delay a new client of it by one request at most, and of another base by none",
  async ([, networkOf]) => {
    const queue = new UnprovenQueue({ servedPerBase: 1 });
    const { ends, leaves, enter } = entering(queue);
    for (const index of sixty) await enter(`stranger ${index}`, networkOf(index));
    expect([...ends.values()].filter((kind) => kind === "full")).toHaveLength(10);
    await enter("new client", "198.51.100.1");
    await enter("new client of another base", "198.51.100.1", "appB");
    expect([ends.get("new client"), ends.get("new client of another base")]).toEqual([undefined, "served"]);
    leaves.get("stranger 0")!();
    await Promise.resolve();
    expect(ends.get("new client")).toBe("served");
  },
);

test("U3: networks whose key was just refused for the base wait behind those without, and make room for them", async () => {
  const queue = new UnprovenQueue({ servedPerBase: 1, mostPerBase: 3 });
  const { ends, leaves, enter } = entering(queue);
  const leave = (name: string, isRefused: boolean) => {
    leaves.get(name)!(isRefused);
    return Promise.resolve();
  };
  for (const network of ["10.0.0.1", "172.16.0.1"]) {
    await enter(`first of ${network}`, network);
    await leave(`first of ${network}`, true);
  }
  await enter("served", "192.0.2.1");
  await enter("second of 10.0.0.1", "10.0.0.1");
  await enter("second of 172.16.0.1", "172.16.0.1");
  // For another base it was not refused.
  await enter("of another base", "10.0.0.1", "appB");
  expect(ends.get("of another base")).toBe("served");
  await enter("new", "192.0.2.2");
  expect([ends.get("new"), ends.get("second of 172.16.0.1")]).toEqual([undefined, "full"]);
  await leave("served", false);
  expect([ends.get("new"), ends.get("second of 10.0.0.1")]).toEqual(["served", undefined]);
  // Not the other way round.
  await enter("new too", "192.0.2.3");
  await enter("third of 172.16.0.1", "172.16.0.1");
  expect(ends.get("third of 172.16.0.1")).toBe("full");
});
