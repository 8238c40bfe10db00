/** Who holds a change set: of those that have taken it, only the last may send or record anything. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { getBase } from "../../../core/control/bases";
import {
  claimChangeSet,
  createChangeSet,
  decideChangeSet,
  type HeldSet,
  newAwaitedSet,
  recordSent,
  releaseChangeSet,
  renewChangeSet,
  restChangeSet,
  unfinishedItems,
} from "../../../core/control/change-sets";
import { authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";
import { until } from "../../support/poll";

async function scene() {
  const control = await testControl();
  const { ctx } = control;
  const { token } = await control.addAccount("owner@example.com");
  const call = caller(consoleApp(ctx, authByHeader()));
  const body = {
    platform: "airtable",
    api_key: GOOD_KEY,
    base_id: "appOne",
    settings: { change_sets: true },
  };
  const { id } = (await call("POST", "/api/v1/bases", { token, body })).body as { id: string };
  const operations = [{ operation: "create" as const, table: "Tasks", fields: { Name: "New" } }];
  const create = async () => createChangeSet(ctx, await getBase(ctx.db, id), { operations });
  const set = await create();
  const [item] = await unfinishedItems(ctx, set.id, 1);
  const claim = async () => (await claimChangeSet(ctx.db))!;
  const sends = (held: HeldSet) => recordSent(ctx, held, [{ id: item!.id, before: undefined }]);
  const lapse = () => ctx.db`update change_sets set held_until = now() - interval '1 second'`;
  /** The proxy of a SQL transaction has sent a record, and left it without an answer. */
  const leave = async () => {
    const sqlSet = { baseId: id, sqlRole: "w", applicationName: "", note: "", typecast: false };
    const awaited = newAwaitedSet(ctx, { ...sqlSet, operations, sending: 1 });
    await awaited.record();
    await releaseChangeSet(ctx.db, awaited.set);
    return awaited.set.id;
  };
  return { control, db: ctx.db, baseId: id, set, create, claim, sends, lapse, leave };
}

test("a hold that has lapsed is over, also for a process that takes the set again after it stood still", async () => {
  const { control, db, claim, sends, lapse } = await scene();
  await using _ = control;
  const first = await claim();
  await lapse();
  expect(await sends(first)).toBe(false);
  const second = await claim();
  expect(second.id).toBe(first.id);
  expect(await renewChangeSet(db, first, "")).toBeUndefined();
  expect(await sends(first)).toBe(false);
  // What the first lets go is not the second's.
  await releaseChangeSet(db, first);
  expect(await sends(second)).toBe(true);
  expect(await claimChangeSet(db)).toBeUndefined();
});

test("of two proxies that look at the same moment, one gets the first set of a base, and the other none", async () => {
  const { control, db, set, create } = await scene();
  await using _ = control;
  await create();
  let second: Promise<HeldSet | undefined> | undefined;
  await db.begin(async (tx) => {
    expect((await claimChangeSet(tx as never))?.id).toBe(set.id);
    // Another proxy, before the claim is committed.
    let isOver = false;
    second = claimChangeSet(db).finally(() => {
      isOver = true;
    });
    const waits = async () =>
      (
        await db`
          select from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`
      ).length > 0;
    await until(async () => isOver || (await waits()), { what: "the other proxy waits" });
  });
  expect(await second).toBeUndefined();
});

test("sets of a base are taken in their order, also while the first is being changed", async () => {
  const { control, db, set, create } = await scene();
  await using _ = control;
  await create();
  await db.begin(async (tx) => {
    await tx`select from change_sets where id = ${set.id} for update`;
    expect(await claimChangeSet(db)).toBeUndefined();
  });
  expect((await claimChangeSet(db))?.id).toBe(set.id);
});

test("what a SQL transaction has left is looked up while other sets of the base, and of the account, are carried out", async () => {
  const { control, db, baseId, create, claim, leave } = await scene();
  await using _ = control;
  await db`update bases set sql_writes = true where id = ${baseId}`;
  await claim();
  const left = await leave();
  await create();
  expect((await claim()).id).toBe(left);
  // The other set of the base waits for the first.
  expect(await claimChangeSet(db)).toBeUndefined();
});

test("a set that cannot continue is held by no proxy until it is due again, and no other of its base comes before it", async () => {
  const { control, db, set, create, claim } = await scene();
  await using _ = control;
  await create();
  await restChangeSet(db, await claim(), { ms: 60_000, why: "The key is rejected" });
  const [stored] = await db`select problem, held_until from change_sets where id = ${set.id}`;
  expect(stored).toEqual({ problem: "The key is rejected", held_until: null });
  expect(await claimChangeSet(db)).toBeUndefined();
  await db`update bases set encrypted_api_key = 'another'`;
  await db`update change_sets set rests_until = now()`;
  expect(await claim()).toMatchObject({
    id: set.id,
    problem: "The key is rejected",
    encryptedApiKey: "another",
  });
});

test("a canceled set, whose calls may have been made, is looked up before later sets of the base are carried out", async () => {
  const { control, db, baseId, set, create, claim, sends } = await scene();
  await using _ = control;
  const held = await claim();
  expect(await sends(held)).toBe(true);
  await restChangeSet(db, held, { ms: 60_000, why: "Airtable does not answer" });
  await create();
  await decideChangeSet(control.ctx, await getBase(db, baseId), set.id, "cancel");
  expect((await claim()).id).toBe(set.id);
});

test("a renewal that arrives after its set was let go of holds nothing", async () => {
  const { control, db, claim } = await scene();
  await using _ = control;
  for (const letGo of [
    (held: HeldSet) => restChangeSet(db, held, { ms: 0, why: "" }),
    (held: HeldSet) => releaseChangeSet(db, held),
  ]) {
    const held = await claim();
    await letGo(held);
    expect(await renewChangeSet(db, held, "")).toBeUndefined();
  }
});
