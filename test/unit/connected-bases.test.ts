/** Lookups of connected bases: each is as of a moment after it was asked for. */
import { expect, test } from "vitest";
import type { Db } from "../../core/context";
import type { Logger } from "../../core/log";
import { ConnectedBases } from "../../core/proxy/connected-bases";
import { until } from "../support/poll";

/** A control plane that counts its statements; the bases that begin with `app` are connected. */
function counting(now?: () => number) {
  let statements = 0;
  const db = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    if (!strings.join("").includes("from bases")) return [];
    statements++;
    const ids = values.find(Array.isArray) as string[];
    const connected = ids.filter((id) => id.startsWith("app"));
    return connected.map((sourceBaseId) => ({ id: "bas_a", sourceBaseId, keyAcceptedAgoMs: 0 }));
  }) as unknown as Db;
  const log = { warn() {}, debug() {} } as unknown as Logger;
  return { bases: new ConnectedBases({ db, log }, now), statements: () => statements };
}

test("calls of the same moment share one statement, and a call after it has been sent makes another", async () => {
  const { bases, statements } = counting();
  const first = Promise.all([bases.current("appA"), bases.current("appA"), bases.current("appB")]);
  expect(statements()).toBe(0);
  await until(() => statements() === 1, { what: "both are asked for together" });
  const second = bases.current("appA");
  await Promise.all([first, second]);
  expect(statements()).toBe(2);
});

test("the last lookup is known without another", async () => {
  const { bases, statements } = counting();
  await bases.current("appA");
  expect((await bases.recent("appA")).bases).toMatchObject([{ id: "bas_a" }]);
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
  await until(() => statements() === 2, { what: "it is looked up again" });
  // The second lookup has only begun.
  expect([isAnswered, statements()]).toEqual([true, 2]);
  await renewed;
  expect([await statementsAt(3000), await statementsAt(6000)]).toEqual([2, 3]);
});

test("look-ups of bases that are not connected share a statement, and those of a connected one do not wait for them", async () => {
  const { bases, statements } = counting();
  await bases.current("appA");
  const many = Array.from({ length: 200 }, (_, at) => bases.recent(`none${at}`));
  const own = bases.current("appA");
  expect((await own).bases).toHaveLength(1);
  expect(new Set((await Promise.all(many)).map(({ mayBeConnected }) => mayBeConnected))).toEqual(
    new Set([false]),
  );
  expect(statements()).toBeLessThan(5);
});

test("however many others are asked for, a connected base stays known", async () => {
  const { bases, statements } = counting(() => 0);
  await bases.current("appA");
  await Promise.all(Array.from({ length: 20_000 }, (_, at) => bases.recent(`none${at}`)));
  const before = statements();
  expect((await bases.recent("appA")).bases).toHaveLength(1);
  expect(statements()).toBe(before);
});
