/** A worker learns within seconds which settings changed, and is not called for bases whose settings stay. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import type { Db } from "../../../core/context";
import { recordRun, SettingsWatch } from "../../../core/control/bases";
import type { SyncFacts } from "../../../core/sync/host";
import { authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";
import { until } from "../../support/poll";

const POLL_MS = 20;
const counts = { seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 1, waitMs: 0 };

/** A sweep of the base; the first makes it active. */
const run = (db: Db, id: string) =>
  recordRun(db, id, { kind: "sweep", startedAt: new Date(), completedAt: new Date(), ...counts });

/** Creates bases and watches them; `calls` has what each was called with. */
async function watched(names: string[]) {
  const stack = new AsyncDisposableStack();
  const control = stack.use(await testControl());
  const { db } = control.ctx;
  const { token } = await control.addAccount("owner@example.com");
  const call = caller(consoleApp(control.ctx, authByHeader()));
  const watch = new SettingsWatch(control.ctx, POLL_MS);
  const watchOne = async (name: string) => {
    const body = { platform: "airtable", api_key: GOOD_KEY, base_id: name };
    const { id } = (await call("POST", "/api/v1/bases", { token, body })).body as { id: string };
    await run(db, id);
    const calls: (SyncFacts | undefined)[] = [];
    const answer = { isExpecting: false };
    const watching = stack.use(
      watch.watch(id, (facts) => {
        calls.push(facts);
        return answer.isExpecting;
      }),
    );
    return { id, calls, answer, watching, readAtFirst: watching.readAt };
  };
  const bases = await Promise.all(names.map(watchOne));
  const isRead = async (since: number) => {
    await until(() => bases.every(({ watching }) => watching.readAt > since), { what: "the facts are read" });
  };
  return { db, watch, bases, isRead, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("a base is called at first, and then when its facts have changed, and others are not", async () => {
  await using scene = await watched(["appOne", "appTwo"]);
  const { db, isRead } = scene;
  const [one, two] = scene.bases as [(typeof scene.bases)[0], (typeof scene.bases)[0]];
  expect(one.readAtFirst).toBe(Number.NEGATIVE_INFINITY);
  await until(() => one.calls.length > 0 && two.calls.length > 0, { what: "the first calls" });
  expect([one.calls[0]!.id, two.calls[0]!.id]).toEqual([one.id, two.id]);

  await db`update bases set turbo = not turbo where id = ${one.id}`;
  await until(() => one.calls.length > 1, { what: "the change is seen" });
  expect(one.calls[1]!.settings.turbo).toBe(!one.calls[0]!.settings.turbo);

  // A run changes the row, and no fact.
  await run(db, one.id);
  await isRead(performance.now());
  await db`delete from bases where id = ${two.id}`;
  await until(() => two.calls.length > 1, { what: "the deletion is seen" });
  expect(two.calls[1]).toBeUndefined();
  expect([one.calls.length, two.calls.length]).toEqual([2, 2]);
});

test("a base without changes is called again as long as it asks for that", async () => {
  await using scene = await watched(["appOne"]);
  const [{ calls, answer, watching }] = scene.bases as [(typeof scene.bases)[0]];
  answer.isExpecting = true;
  await until(() => calls.length >= 3, { what: "it is called again" });
  expect(new Set(calls).size).toBe(1);
  answer.isExpecting = false;
  const told = calls.length;
  await until(() => calls.length > told, { what: "it is called once more" });
  await scene.isRead(performance.now());
  await scene.isRead(performance.now());
  expect(calls.length).toBe(told + 1);
  watching.callAgain();
  await until(() => calls.length > told + 1, { what: "it is called when it asks" });
  await scene.isRead(performance.now());
  expect(calls.length).toBe(told + 2);
});

test("two may watch a base; one that no longer does is not called", async () => {
  await using scene = await watched(["appOne"]);
  const [{ id, calls, watching }] = scene.bases as [(typeof scene.bases)[0]];
  await until(() => calls.length > 0, { what: "the first call" });
  const others: (SyncFacts | undefined)[] = [];
  using other = scene.watch.watch(id, (facts) => {
    others.push(facts);
    return false;
  });
  await until(() => others.length > 0, { what: "the other's first call" });
  expect([calls.length, others[0]]).toEqual([1, calls[0]]);
  watching[Symbol.dispose]();
  watching.callAgain();
  await scene.db`update bases set turbo = not turbo where id = ${id}`;
  await until(() => others.length > 1, { what: "the change is seen" });
  other[Symbol.dispose]();
  expect(calls.length).toBe(1);

  const again: (SyncFacts | undefined)[] = [];
  using back = scene.watch.watch(id, (facts) => {
    again.push(facts);
    return false;
  });
  expect(back.readAt).toBe(Number.NEGATIVE_INFINITY);
  await until(() => again.length > 0, { what: "a base that is watched again is read" });
  expect(again).toEqual([others[1]]);
});

test("a base that is watched while others are being read waits for the next read", async () => {
  await using scene = await watched(["appOne", "appTwo"]);
  const [one, two] = scene.bases as [(typeof scene.bases)[0], (typeof scene.bases)[0]];
  await until(() => one.calls.length > 0 && two.calls.length > 0, { what: "the first calls" });
  two.watching[Symbol.dispose]();
  const locked = Promise.withResolvers<void>();
  const unlock = Promise.withResolvers<void>();
  const holding = scene.db.begin(async (tx) => {
    await tx`lock table bases in access exclusive mode`;
    locked.resolve();
    await unlock.promise;
  });
  await locked.promise;
  // The read that waits for the lock does not ask for the second base.
  await until(
    async () => (await scene.db`select from pg_stat_activity where wait_event_type = 'Lock'`).length > 0,
    { what: "a read waits" },
  );
  const late: (SyncFacts | undefined)[] = [];
  using _late = scene.watch.watch(two.id, (facts) => {
    late.push(facts);
    return false;
  });
  unlock.resolve();
  await holding;
  await until(() => late.length > 0, { what: "the first call of the late one" });
  expect(late.map((facts) => facts?.id)).toEqual([two.id]);
});

test("a callback that fails is called again, and keeps no other from being called", async () => {
  await using scene = await watched(["appOne", "appTwo"]);
  const [one, two] = scene.bases as [(typeof scene.bases)[0], (typeof scene.bases)[0]];
  let failures = 0;
  using _failing = scene.watch.watch(one.id, () => {
    if (++failures < 3) throw new Error("this one fails twice");
    return false;
  });
  await until(() => failures === 3 && one.calls.length > 0 && two.calls.length > 0, {
    what: "all are called",
  });
});

test("what people change is notified, and what runs change is not", async () => {
  await using scene = await watched(["appOne", "appTwo"]);
  const { db } = scene;
  const [one, two] = scene.bases as [(typeof scene.bases)[0], (typeof scene.bases)[0]];
  let notified = 0;
  const { unlisten } = await db.listen("basetide_facts", () => void notified++);
  /** Messages arrive in the order of the commits. */
  const heard = async (work: PromiseLike<unknown>) => {
    const before = notified;
    await work;
    const marker = Promise.withResolvers<void>();
    const end = await db.listen("settings_watch_test", () => marker.resolve());
    await db.notify("settings_watch_test", "");
    await marker.promise;
    await end.unlisten();
    return notified > before;
  };
  expect(await heard(run(db, one.id))).toBe(false);
  expect(await heard(db`update bases set turbo = not turbo where id = ${one.id}`)).toBe(true);
  expect(await heard(db`update bases set state = 'paused', is_paused = true where id = ${one.id}`)).toBe(
    true,
  );
  expect(await heard(db`update clusters set timeline = '0000000A'`)).toBe(true);
  expect(await heard(db`delete from bases where id = ${two.id}`)).toBe(true);
  await unlisten();
});

test("a change whose notification is lost is read all the same", async () => {
  await using scene = await watched(["appOne"]);
  const [{ id, calls }] = scene.bases as [(typeof scene.bases)[0]];
  await until(() => calls.length > 0, { what: "the first call" });
  await scene.db`alter table bases disable trigger bases_changed`;
  await scene.db`update bases set turbo = not turbo where id = ${id}`;
  await until(() => calls.length > 1, { what: "the change is seen" });
});
