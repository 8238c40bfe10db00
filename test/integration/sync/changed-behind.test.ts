/** I3: rows that were changed in SQL without the worker are repaired. */

import { expect, test } from "vitest";
import { lastReplicaState, recordReplicaState } from "../../../core/control/bases";
import { createSyncHost } from "../../../core/control/sync-host";
import { claimEpochAbove, markSyncStarted } from "../../../core/replica";
import { claimLease } from "../../../core/sync/lease/lease-replica";
import { testControl } from "../../support/control-support";
import { type Engine, testEngine } from "../../support/engine";
import { liveEngine } from "../../support/live-engine";
import { addPlainBases } from "../../support/plain-bases";
import { until } from "../../support/poll";
import { testReplica } from "../../support/replica";
import { saveReplica } from "../../support/saved-replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

const PEOPLE = 30;
const names = Array.from({ length: PEOPLE }, (_, index) => ({ id: `rec${1000 + index}`, name: `n${index}` }));

async function synced<E extends Engine>(engine: E): Promise<E> {
  const records = names.map(({ id, name }) => sourceRecord(id, { fld0: name }));
  engine.source.add(sourceTable("tblP", "People", { Name: "text" }), records);
  await engine.sync();
  await engine.sync();
  return engine;
}

/** Loses, restores and invents rows, like a server that has lost commits, or a user with SQL access. */
async function tamper({ replica }: Engine): Promise<void> {
  const { sql } = replica.replica;
  await sql`delete from public.people where id in ('rec1001', 'rec1002')`;
  await sql`update public.people set name = 'as it was before' where id = 'rec1003'`;
  await sql`insert into public.people values ('recGhost', now(), 'ghost'), ('not an id', now(), 'ghost')`;
}

const rowsOf = async (engine: Engine) =>
  ((await engine.rows()) as { id: string; name: string }[]).map(({ id, name }) => ({ id, name }));

test("a sweep compares every record with its row once fingerprints are old enough, and repairs differences", async () => {
  const engine = await synced(await testEngine());
  await tamper(engine);
  // Those are still trusted.
  expect(await engine.sync()).toMatchObject({ inserted: 0, updated: 0, deleted: 0 });
  engine.cache.tables.get("tblP")!.comparedAt -= engine.cache.compareEveryMs;
  expect(await engine.sync()).toMatchObject({ inserted: 2, updated: 1, deleted: 2 });
  expect(await rowsOf(engine)).toEqual(names);
  // And not again before it is due.
  await engine.replica.replica.sql`update public.people set name = 'x' where id = 'rec1004'`;
  expect(await engine.sync()).toMatchObject({ updated: 0 });
});

test("a background sweep in live mode, which relies on the feed, does the same", async () => {
  const engine = await synced(await liveEngine());
  engine.cache.compareEveryMs = 0;
  await tamper(engine);
  engine.cadence.sweepEveryMs = 50;
  engine.start();
  await until(async () => Bun.deepEquals(await rowsOf(engine), names), { what: "the rows are repaired" });
});

test("fingerprints are trusted for half a day at most: with sweeps a day apart, each one compares", async () => {
  const engine = await testEngine();
  expect(engine.cache.compareEveryMs).toBeLessThanOrEqual(12 * 3600_000);
});

test("a replica on another server, on another timeline, or behind the recorded epoch has lost commits", async () => {
  await using control = await testControl();
  await using t = await testReplica();
  const { db } = control.ctx;
  const [id = ""] = await addPlainBases(control, 1);
  await db`insert into live_feeds (base_id, state) values (${id}, 'making')`;
  const lease = async () =>
    (await claimLease({ log: control.ctx.log, host: createSyncHost(control.ctx) }, id, t.replica))
      .isContinued;
  const gap = async () => {
    const [feed] = await db`
      with feed as (select gap_since is not null as gap from live_feeds where base_id = ${id}),
        closed as (update live_feeds set gap_since = null where base_id = ${id})
      select gap from feed`;
    return feed!.gap;
  };
  const noted = async () =>
    (
      await db`select replica_identity as identity, replica_epoch::float8 as epoch from bases where id = ${id}`
    )[0]!;

  expect(await lease()).toBe(true);
  expect(await lease()).toBe(true);
  expect(await gap()).toBe(false);
  const { identity, epoch } = await noted();
  // The tests' role may read all of it, a superuser or not.
  expect(identity).toMatch(/^\d+\/[0-9A-F]{8}\/\d+$/);

  // The feed's cursor covers commits that are lost: their changes must be found.
  const [server, timeline, database] = identity.split("/");
  for (const other of [
    `1/${timeline}/${database}`,
    `${server}/00000099/${database}`,
    `${server}/${timeline}/1`,
  ]) {
    await db`update bases set replica_identity = ${other} where id = ${id}`;
    expect(await lease(), other).toBe(false);
    expect(await gap(), other).toBe(true);
    expect(await noted()).toMatchObject({ identity });
    expect(await lease()).toBe(true);
    expect(await gap()).toBe(false);
  }
  await t.replica.sql`update public_swap._state set epoch = ${epoch - 1}`;
  expect(await lease()).toBe(false);
  expect(await gap()).toBe(true);
  expect(await lease()).toBe(true);

  // A worker that dies before it has recorded the loss does not hide it.
  await t.replica.sql`update public_swap._state set epoch = ${epoch - 1}`;
  expect(await claimEpochAbove(t.replica, (await noted()).epoch)).toMatchObject({ hasLost: true });
  expect(await lease()).toBe(false);
  expect(await gap()).toBe(true);
  expect(await lease()).toBe(true);

  // A worker that was overtaken before it has recorded its lease records nothing.
  const overtaken = await claimEpochAbove(t.replica, (await lastReplicaState(db, id)).epoch);
  expect(await lease()).toBe(true);
  const latest = await noted();
  expect(await recordReplicaState(db, id, { ...overtaken, identity: "its own" }, true)).toBe(false);
  expect(await noted()).toEqual(latest);
  expect(await gap()).toBe(false);
  await db`delete from bases`;
  await db`delete from databases`;
});

test("I5: no lease gets the epoch of an earlier one, whichever of the two databases has lost its claim", async () => {
  await using control = await testControl();
  await using t = await testReplica();
  const { db } = control.ctx;
  const [id = ""] = await addPlainBases(control, 1);
  const lease = () => claimLease({ log: control.ctx.log, host: createSyncHost(control.ctx) }, id, t.replica);
  const { epoch: recorded } = await lease();
  const saved = await saveReplica(t.replica, []);
  const earlier = [recorded];
  for (const { isSameServer, isControlLost } of [
    { isSameServer: false, isControlLost: false },
    // From the same state again.
    { isSameServer: false, isControlLost: true },
    { isSameServer: false, isControlLost: true },
    { isSameServer: true, isControlLost: false },
  ]) {
    earlier.push((await lease()).epoch);
    await saved.lose({ isSameServer });
    if (isControlLost) await db`update bases set replica_epoch = ${recorded} where id = ${id}`;
    const { epoch } = await lease();
    expect(Math.min(...earlier.map((one) => epoch - one))).toBeGreaterThan(0);
    for (const one of earlier) {
      await expect(markSyncStarted(t.replica, one)).rejects.toMatchObject({ code: "lease_lost" });
    }
    await markSyncStarted(t.replica, epoch);
    earlier.push(epoch);
  }
  // A restart that loses nothing ends no lease, and the next one continues from it.
  const running = earlier.at(-1)!;
  await t.replica.sql`update public_swap._state set incarnation = 'before a restart'`;
  await markSyncStarted(t.replica, running);
  expect(await lease()).toMatchObject({ previousEpoch: running, isContinued: true });
  await db`delete from bases`;
  await db`delete from databases`;
});
