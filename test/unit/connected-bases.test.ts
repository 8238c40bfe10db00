/** Lookups of connected bases: each is as of a moment after it was asked for. */
import { expect, test } from "vitest";
import type { Db } from "../../core/context";
import type { Logger } from "../../core/log";
import { ConnectedBases } from "../../core/proxy/connected-bases";

/** A control plane that counts its statements and answers each with one base. */
function counting(now?: () => number) {
  let statements = 0;
  const db = (async (strings: TemplateStringsArray) => {
    if (strings.join("").includes("from bases")) statements++;
    return [{ id: "bas_a", keyAcceptedAgoMs: 0 }];
  }) as unknown as Db;
  const log = { warn() {}, debug() {} } as unknown as Logger;
  return { bases: new ConnectedBases({ db, log }, now), statements: () => statements };
}

test("calls of the same moment share one statement, and a call after it has been sent makes another", async () => {
  const { bases, statements } = counting();
  const first = Promise.all([bases.current("appA"), bases.current("appA"), bases.current("appB")]);
  expect(statements()).toBe(0);
  await Promise.resolve();
  expect(statements()).toBe(2);
  const second = bases.current("appA");
  await Promise.all([first, second]);
  expect(statements()).toBe(3);
});

test("the last lookup is known without another", async () => {
  const { bases, statements } = counting();
  expect(bases.known("appA")).toEqual([]);
  await bases.current("appA");
  expect(bases.known("appA")).toMatchObject([{ id: "bas_a" }]);
  expect(statements()).toBe(1);
});

test("a read of a busy base never waits for a lookup, and none uses one that is three seconds old", async () => {
  let now = 0;
  const { bases, statements } = counting(() => now);
  const statementsAt = async (atMs: number) => {
    now = atMs;
    await bases.recent("appA");
    return statements();
  };
  expect([await statementsAt(0), await statementsAt(1400)]).toEqual([1, 1]);
  now = 1600;
  let isAnswered = false;
  const renewed = bases.recent("appA").then(() => {
    isAnswered = true;
  });
  await Promise.resolve();
  // The second lookup has only begun.
  expect([isAnswered, statements()]).toEqual([true, 2]);
  await renewed;
  expect([await statementsAt(3000), await statementsAt(6000)]).toEqual([2, 3]);
});
