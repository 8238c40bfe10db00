/** Checking a password keeps a core busy: many checks wait for each other, and nothing else waits for them. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { hashPassword, PasswordPlace, verifyPassword } from "../../core/control/accounts";

const MANY = 20;

test("many checks run one after another, and an urgent one is next", async () => {
  const hash = await hashPassword("correct horse");
  let done = 0;
  const checks = Array.from({ length: MANY }, async () => {
    const isRight = await verifyPassword("a guess", hash);
    done++;
    return isRight;
  });
  const urgent = verifyPassword("correct horse", hash, { isUrgent: true }).then((isRight) => ({
    isRight,
    before: done,
  }));
  expect(await urgent).toEqual({ isRight: true, before: 1 });
  expect(await Promise.all(checks)).toEqual(Array(MANY).fill(false));
});

test("an invalid hash fails its check alone", async () => {
  await expect(verifyPassword("a guess", "no hash")).rejects.toThrow(/UnsupportedAlgorithm|hash/i);
  expect(await verifyPassword("correct horse", await hashPassword("correct horse"))).toBe(true);
});

test.skipIf(process.platform !== "linux")("checks have a lower priority than everything else", async () => {
  await hashPassword("correct horse");
  const ofThreads = readdirSync("/proc/self/task").map((id) => niceOf(id));
  expect(ofThreads).toContain(5);
});

test("one network waits for as many checks as one second has, and many networks of one client make room for another", () => {
  using places = new DisposableStack();
  const take = (network: string) => {
    const place = PasswordPlace.take(network);
    if (place) places.use(place);
    return place;
  };
  const own = Array.from({ length: 5 }, () => take("192.0.2.1"));
  expect(own.map((place) => place !== undefined)).toEqual([true, true, true, true, false]);
  const many = Array.from({ length: 60 }, (_, at) => take(`198.51.100.${at}`));
  expect(many.filter(Boolean).length).toBeGreaterThanOrEqual(36);
  const other = take("203.0.113.1");
  expect(other).toBeDefined();
  expect(many.filter((place) => place?.gaveWay.aborted)).toHaveLength(1);
  expect(other!.gaveWay.aborted).toBe(false);
});

test("a check whose place has given way is not made, and one that has begun keeps it", async () => {
  const hash = await hashPassword("correct horse");
  using place = PasswordPlace.take("192.0.2.1")!;
  expect(await verifyPassword("correct horse", hash, { place })).toBe(true);
  using places = new DisposableStack();
  const take = (network: string) => places.use(PasswordPlace.take(network)!);
  const many = Array.from({ length: 39 }, (_, at) => take(`198.51.100.${at}`));
  take("203.0.113.1");
  expect([place.gaveWay.aborted, many[37]!.gaveWay.aborted, many[38]!.gaveWay.aborted]).toEqual([
    false,
    false,
    true,
  ]);
  await expect(verifyPassword("correct horse", hash, { place: many[38]! })).rejects.toThrow();
  expect(await verifyPassword("correct horse", hash, { place: many[37]! })).toBe(true);
});

/** @param id of a thread of this process */
function niceOf(id: string): number {
  const stat = readFileSync(`/proc/self/task/${id}/stat`, "utf8");
  // The process name in front may contain spaces; nice is the 19th value of all, and the 17th after the name.
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
}
