/**
 * Re-reads that writes share, compared with a model of the replica's rule: whatever overlaps, a wait never ends too
 * early.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type RecordReader, Rereads } from "../../core/proxy/rereads";

const IDS = ["rec1", "rec2"];

/** A source, a replica that applies images as `row-images.sql` does, and every wait between them up to `pause`. */
function scene(pause: (what: string) => Promise<void>) {
  const source = new Map(IDS.map((id) => [id, 0]));
  const sql = new Map(IDS.map((id) => [id, 0]));
  const log = new Map<string, { appliedVersion: number; readVersions: number }>();
  let readVersions = 0;
  let reads = 0;
  const takeReadVersion = () => ++readVersions;

  /** @returns the ids that lost */
  function apply(images: [id: string, version: number][], readVersion: number): string[] {
    return images.flatMap(([id, version]) => {
      if ((log.get(id)?.appliedVersion ?? 0) > readVersion) return [id];
      expect(version, "SQL goes back").toBeGreaterThanOrEqual(sql.get(id)!);
      sql.set(id, version);
      log.set(id, { appliedVersion: takeReadVersion(), readVersions: readVersion });
      return [];
    });
  }

  const rereads = new Rereads(async (_, ids) => {
    await pause("take a ticket");
    const readVersions = ids.flatMap((id): [string, number][] =>
      log.has(id) ? [[id, log.get(id)!.readVersions]] : [],
    );
    return { readVersion: takeReadVersion(), readVersions: new Map(readVersions) };
  });

  const reading: RecordReader = {
    async read(_, choose, signal) {
      await pause("wait for the quota");
      signal.throwIfAborted();
      const ids = choose();
      reads++;
      await pause("ask to read");
      const records = ids.map((id) => ({ id, createdTime: "", fields: { version: source.get(id)! } }));
      await pause("answer the read");
      return { records, gone: [] };
    },
    async apply(_, { readVersion, records }) {
      await pause("apply what was read");
      return apply(
        records.map(({ id, fields }) => [id, fields.version as number]),
        readVersion,
      );
    },
  };

  /** A client's write: the wait for the quota, the write itself, and everything until SQL shows it. */
  async function write(ids: string[], caller: string): Promise<void> {
    await pause("wait for the quota");
    const readVersion = takeReadVersion();
    await pause("ask to write");
    const written = ids.map((id): [string, number] => {
      source.set(id, source.get(id)! + 1);
      return [id, source.get(id)!];
    });
    await pause("answer the write");
    const lost = apply(written, readVersion);
    rereads.applied(
      "tbl",
      ids.filter((id) => !lost.includes(id)),
      readVersion,
    );
    if (lost.length > 0) {
      const since = takeReadVersion();
      const wanted = { tableId: "tbl", ids: lost, since, caller };
      expect(await rereads.shown(wanted, reading, new AbortController().signal)).toBe(true);
    }
    for (const [id, version] of written) expect(sql.get(id), "not shown").toBeGreaterThanOrEqual(version);
  }

  return { write, reading, rereads, apply, takeReadVersion, readsOf: () => reads };
}

test("I1, I2: whatever overlaps, a wait ends only when SQL shows its write, and SQL never goes back", async () => {
  const writes = fc.array(
    fc.record({ ids: fc.subarray(IDS, { minLength: 1 }), caller: fc.constantFrom("a", "b") }),
    { minLength: 1, maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), writes, async (scheduler, all) => {
      const { write } = scene((what) => scheduler.schedule(Promise.resolve(), what));
      await scheduler.waitFor(Promise.all(all.map(({ ids, caller }) => write(ids, caller))));
    }),
    { numRuns: 300 },
  );
});

test("writes that overlap each other, and a reader that goes last, cost one request to read", async () => {
  const turns: (() => void)[] = [];
  const gates = new Map<string, () => void>();
  const { write, readsOf } = scene((what) => {
    if (what === "wait for the quota") return new Promise((resolve) => void turns.push(resolve));
    if (what === "answer the write")
      return new Promise((resolve) => void gates.set(`${gates.size}`, resolve));
    return Promise.resolve();
  });
  const writing = Array.from({ length: 10 }, () => write(["rec1"], "a"));
  for (const go of turns.splice(0)) go();
  await expect.poll(() => gates.size).toBe(10);
  for (const answer of gates.values()) answer();
  await expect.poll(() => turns.length).toBe(1);
  turns[0]!();
  await Promise.all(writing);
  expect(readsOf()).toBe(1);
});

test("a wait that another's image ends gives up its permit", async () => {
  const readVersions = Promise.withResolvers<void>();
  const given = Promise.withResolvers<unknown>();
  const { rereads, reading, takeReadVersion, apply } = scene(async () => {});
  const waiting: RecordReader = {
    ...reading,
    read: (_id, _choose, signal) =>
      new Promise((_resolve, reject) => {
        readVersions.resolve();
        signal.addEventListener("abort", () => {
          given.resolve("given up");
          reject(signal.reason);
        });
      }),
  };
  const wanted = { tableId: "tbl", ids: ["rec1"], since: takeReadVersion(), caller: "a" };
  const shown = rereads.shown(wanted, waiting, new AbortController().signal);
  await readVersions.promise;
  const later = takeReadVersion();
  expect(apply([["rec1", 1]], later)).toEqual([]);
  // Without a notification: it is found in the recent-writes log.
  expect(await shown).toBe(true);
  expect(await given.promise).toBe("given up");
});

test("a wait that times out ends alone, and a failure ends all that wait for it", async () => {
  const { rereads, reading, takeReadVersion } = scene(async () => {});
  const answer = Promise.withResolvers<never>();
  const failing: RecordReader = { ...reading, read: () => answer.promise };
  const over = new AbortController();
  const wait = (signal: AbortSignal) =>
    rereads.shown({ tableId: "tbl", ids: ["rec1"], since: takeReadVersion(), caller: "a" }, failing, signal);
  const first = wait(over.signal);
  const second = wait(new AbortController().signal);
  over.abort(new Error("too late"));
  await expect(first).rejects.toThrow("too late");
  answer.reject(new Error("no source"));
  await expect(second).rejects.toThrow("no source");
  // The next one requests it again.
  const third = rereads.shown(
    { tableId: "tbl", ids: ["rec1"], since: takeReadVersion(), caller: "a" },
    reading,
    new AbortController().signal,
  );
  expect(await third).toBe(true);
});
