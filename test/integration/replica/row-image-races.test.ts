/** Row images, the recent-writes log and structure numbers where two sessions of a replica meet. */
import fc from "fast-check";
import postgres from "postgres";
import { expect, test } from "vitest";
import { writtenElsewhere } from "../../../core/control/base-move/copy-writes";
import {
  applyRowImages,
  type CatalogTable,
  changeShape,
  claimEpoch,
  compileMapper,
  installReplica,
  loadCatalog,
  mapRecords,
  openReplica,
  planSchema,
  type Replica,
  startBuild,
  takeReadVersion,
  trimRecentWrites,
} from "../../../core/replica";
import { trimOldRecentWrites } from "../../../core/sync/lease/trim-recent-writes";
import { BaseCache } from "../../../core/sync/state";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { type TestReplica, testReplica } from "../../support/replica";
import { saveReplica } from "../../support/saved-replica";
import { sourceTable } from "../../support/source-records";

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const CREATED = "2024-05-01T12:34:56";

/** Brings a table live in its current form at the source. */
async function build(t: TestReplica, fields: Record<string, "number" | "text">): Promise<CatalogTable> {
  const catalog = await loadCatalog(t.replica);
  const plan = planSchema(catalog, { tables: [sourceTable("tblO", "Orders", fields)] }, SETTINGS);
  await changeShape(t.replica, t.epoch, catalog, plan);
  for (const spec of plan.rebuild) {
    const aside = await startBuild(t.replica, t.epoch, spec);
    await putBuild(t, aside, (await loadCatalog(t.replica)).get("tblO"));
  }
  return (await loadCatalog(t.replica)).get("tblO")!;
}

/** An image of orders: from a client if `isProxied`, otherwise from a sweep. */
function orders(ids: string[], price: number, isProxied = true) {
  const rows = ids.map((id) => ({ id, created_time: CREATED, price }));
  const records = ids.map((id) => ({ id, createdTime: `${CREATED}.000Z`, fields: { fld0: price } }));
  return { rows, gone: [], issues: [], ...(isProxied && { records }) };
}

const prices = ({ sql }: Replica) =>
  sql<{ id: string; price: number }[]>`select id, price::int from public.orders order by id`.then((rows) => [
    ...rows,
  ]);

/** Sessions of the database, other than `sql`'s, that wait for a lock. */
async function waiting(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return row!.count;
}

async function holdingSession(t: TestReplica) {
  const pool = postgres(t.ownerUrl, {
    max: 2,
    onnotice: () => {},
    connection: { default_transaction_isolation: "read committed" },
  });
  const session = await pool.reserve();
  return {
    session,
    pool,
    async [Symbol.asyncDispose]() {
      session.release();
      await pool.end({ timeout: 1 });
    },
  };
}

test.for(["read committed", "repeatable read", "serializable"])(
  "I5: with %s as the database's default, a worker that loses its lease while it waits writes nothing",
  async (level) => {
    await using t = await testReplica();
    const table = await build(t, { Price: "number" });
    await applyRowImages(t.replica, table, {
      epoch: null,
      readVersion: await takeReadVersion(t.replica),
      ...orders(["rec1"], 1),
    });
    await using other = await holdingSession(t);
    const [{ name } = { name: "" }] = await other.pool<{ name: string }[]>`select current_database() as name`;
    await other.pool.unsafe(`alter database ${name} set default_transaction_isolation = '${level}'`);
    const worker = openReplica({ url: t.ownerUrl, schema: "public" });
    try {
      const epoch = await claimEpoch(worker);
      const readVersion = await takeReadVersion(worker);
      const { session } = other;
      await session`begin`;
      await session`select public_swap.claim()`;
      const write = applyRowImages(worker, table, {
        epoch,
        readVersion,
        ...orders(["rec1"], 2, false),
      }).catch((error: unknown) => error);
      await until(async () => (await waiting(other.pool)) === 1, {
        what: "the worker without its lease waits",
      });
      await session`commit`;
      expect(await write).toMatchObject({ code: "lease_lost" });

      // Of two images that were requested one after the other, the later request wins.
      const old = await takeReadVersion(worker);
      const newer = await takeReadVersion(worker);
      await session`begin`;
      await session`select from public_swap."apply_row_images_tblO"(${JSON.stringify(orders(["rec9"], 99).rows)}::text::json,
        null, ${table.shape}, ${newer}, array['rec9'], '{}', null, '{}')`;
      const late = applyRowImages(worker, table, { epoch: null, readVersion: old, ...orders(["rec9"], 1) });
      await until(async () => (await waiting(other.pool)) === 1, { what: "the older image waits" });
      await session`commit`;
      expect(await late).toMatchObject({ lost: ["rec9"], inserted: 0, updated: 0 });
      expect(await prices(worker)).toEqual([
        { id: "rec1", price: 1 },
        { id: "rec9", price: 99 },
      ]);
    } finally {
      await worker.close();
    }
  },
);

test("columns may have the names that the function of the table uses", async () => {
  await using t = await testReplica();
  const names = [
    "p_ids",
    "p_rows",
    "p_gone",
    "v_there",
    "lost",
    "updated",
    "images",
    "t",
    "s",
    "c",
    "changed",
  ];
  const table = await build(t, Object.fromEntries(names.map((name) => [name, "text" as const])));
  const row = (id: string, value: string) => ({
    id,
    created_time: CREATED,
    ...Object.fromEntries(table.spec.columns.map(({ name }) => [name, value])),
  });
  const apply = async (rows: ReturnType<typeof row>[], gone: string[]) =>
    applyRowImages(t.replica, table, {
      epoch: t.epoch,
      readVersion: await takeReadVersion(t.replica),
      rows,
      gone,
      issues: [],
    });
  expect(await apply([row("rec1", "a"), row("rec2", "a")], [])).toMatchObject({ inserted: 2, updated: 0 });
  expect(await apply([row("rec1", "a"), row("rec2", "b"), row("rec3", "b")], [])).toMatchObject({
    inserted: 1,
    updated: 1,
  });
  expect(await apply([], ["rec3"])).toMatchObject({ deleted: 1, lost: [] });
  const rows = await t.replica.sql`select id, v_there, lost from public.orders order by id`;
  expect([...rows]).toEqual([
    { id: "rec1", v_there: "a", lost: "a" },
    { id: "rec2", v_there: "b", lost: "b" },
  ]);
});

test("I5: a session that reads another's commits too late is refused, whatever its isolation level", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  await using other = await holdingSession(t);
  const { session } = other;
  const attempts = {
    apply: () =>
      session`select from public_swap."apply_row_images_tblO"('[]', null, ${table.shape}, 1, '{}', '{}', null, null)`,
    fence: () => session`select public_swap.fence(${t.epoch})`,
    claim: () => session`select public_swap.claim()`,
  };
  for (const [what, attempt] of Object.entries(attempts)) {
    await session`begin isolation level repeatable read`;
    await expect(attempt(), what).rejects.toMatchObject({
      code: "BT003",
      message: expect.stringContaining("default_transaction_isolation"),
    });
    await session`rollback`;
  }
});

test("installation and provisioning run as read committed, whatever the server's default is", async () => {
  await using t = await testReplica();
  await using other = await holdingSession(t);
  const [{ name } = { name: "" }] = await other.pool<{ name: string }[]>`select current_database() as name`;
  await other.pool.unsafe(`alter database ${name} set default_transaction_isolation = 'serializable'`);
  await installReplica(t.ownerUrl, { schema: "public", role: t.role });
  const replica = openReplica({ url: t.ownerUrl, schema: "public" });
  const [row] = await replica.sql`select current_setting('transaction_isolation') as level`;
  await replica.close();
  expect(row).toEqual({ level: "read committed" });
});

test("a commit is durable when it is answered, even if the database's default differs", async () => {
  await using t = await testReplica();
  await using other = await holdingSession(t);
  const { session } = other;
  await session`set synchronous_commit = off`;
  await session`begin`;
  await session`select public_swap.fence(${t.epoch})`;
  expect((await session`show synchronous_commit`)[0]).toEqual({ synchronous_commit: "on" });
  await session`rollback`;
  await session`set synchronous_commit = remote_apply`;
  await session`begin`;
  await session`select public_swap.fence(${t.epoch})`;
  expect((await session`show synchronous_commit`)[0]).toEqual({ synchronous_commit: "remote_apply" });
  await session`rollback`;
});

test("a trim keeps the log rows of an image that is being recorded, and waits for none", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  const ids = ["recA", "recB", "recC"];
  const readVersion = await takeReadVersion(t.replica);
  await applyRowImages(t.replica, table, { epoch: null, readVersion, ...orders(ids, 1) });
  const upto = await takeReadVersion(t.replica);
  await using other = await holdingSession(t);
  const { session } = other;
  await session`begin`;
  // Recorded in another order than the trim finds them in: each would lock what the other waits for.
  await session`select from public_swap._recent_writes where record_id = 'recB' for update`;
  await trimRecentWrites(t.replica, t.epoch, upto);
  await session`update public_swap._recent_writes set applied_version = nextval('public_swap._versions') where record_id = 'recB'`;
  await session`commit`;
  const left = await t.replica.sql`select record_id from public_swap._recent_writes`;
  expect([...left]).toEqual([{ record_id: "recB" }]);
  // Images that the recent-writes log can no longer judge are refused.
  expect(
    await applyRowImages(t.replica, table, { epoch: null, readVersion, ...orders(["recA"], 5) }),
  ).toMatchObject({
    lost: ["recA"],
  });
});

const handedOver = { shape: 1, loggedUpTo: 1, fingerprints: new Uint8Array(), comparedAt: 0 };

test("a trim that cannot run now is done by the next one, and fails no operation", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  const readVersion = await takeReadVersion(t.replica);
  await applyRowImages(t.replica, table, { epoch: null, readVersion, ...orders(["recA"], 1) });
  const cache = new BaseCache(t.epoch);
  const now = performance.now();
  cache.trimPoints = [
    { at: now - 400_000, readVersion: await takeReadVersion(t.replica) },
    { at: now - 60_000, readVersion: await takeReadVersion(t.replica) },
  ];
  cache.namesSeenAt = now;
  await using other = await holdingSession(t);
  const { session } = other;
  await session`begin`;
  await session`lock table public_swap._recent_writes in access exclusive mode`;
  const hasty: Replica = {
    ...t.replica,
    sql: postgres(t.ownerUrl, {
      max: 1,
      connection: { lock_timeout: 50, default_transaction_isolation: "read committed" },
      types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    }),
  };
  await trimOldRecentWrites(hasty, cache, now);
  await session`rollback`;
  expect(await t.replica.sql`select from public_swap._recent_writes`).toHaveLength(1);
  cache.trimPoints.at(-1)!.at = now - 60_000;
  cache.handedOver.set("tbl", handedOver);
  await trimOldRecentWrites(hasty, cache, now);
  expect(await t.replica.sql`select from public_swap._recent_writes`).toHaveLength(0);
  // What was written since would no longer be found.
  expect(cache.handedOver.size).toBe(0);
  await hasty.sql.end();
});

test("an empty log is trimmed without a statement", async () => {
  const silent = { sql: () => Promise.reject(new Error("a statement was sent")) } as unknown as Replica;
  const cache = new BaseCache(1);
  const now = performance.now();
  const [old, recent] = [
    { at: now - 400_000, readVersion: 1 },
    { at: now - 60_000, readVersion: 2 },
  ];
  const latest = { sentAt: now - 100, readVersion: 3, hasRecentWrites: false };
  cache.trimPoints = [old, recent];
  cache.handedOver.set("tbl", handedOver);
  await trimOldRecentWrites(silent, cache, now, latest);
  expect(cache.handedOver.size).toBe(1);
  expect(cache.trimmedTo).toEqual(old);
  expect(cache.trimPoints).toEqual([recent, { at: latest.sentAt, readVersion: 3 }]);
  // Not again within half a minute.
  await trimOldRecentWrites(silent, cache, now, { ...latest, readVersion: 4 });
  expect(cache.trimPoints).toHaveLength(2);
  cache.trimPoints = [old, recent];
  await expect(
    trimOldRecentWrites(silent, cache, now, { ...latest, hasRecentWrites: true }),
  ).rejects.toThrow();
});

test("a client's write is kept until a schema check has judged its names, which is requested after ten minutes", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  const { replica } = t;
  const entries = async () => (await replica.sql`select from public_swap._recent_writes`).length;
  const cache = new BaseCache(t.epoch);
  const now = performance.now();
  const point = async (minutesAgo: number) => ({
    at: now - minutesAgo * 60_000,
    readVersion: await takeReadVersion(replica),
  });
  const write = async (id: string) =>
    applyRowImages(replica, table, {
      epoch: null,
      readVersion: await takeReadVersion(replica),
      ...orders([id], 1),
    });
  await write("recA");
  const judged = await point(9);
  await write("recB");
  cache.trimPoints = [judged, await point(6)];
  cache.namesSeenAt = now - 8 * 60_000;
  cache.schemaSeenAt = now;
  await trimOldRecentWrites(replica, cache, now);
  expect(await entries()).toBe(1);
  expect(cache.schemaSeenAt).toBe(now);

  cache.namesSeenAt = now - 12 * 60_000;
  cache.trimPoints[0]!.at = now - 11 * 60_000;
  cache.trimPoints.splice(1, Infinity, { at: now - 31_000, readVersion: cache.trimPoints[0]!.readVersion });
  await trimOldRecentWrites(replica, cache, now);
  expect(await entries()).toBe(1);
  // It is due, and no request: those have the control plane's time, and this process's clock may be ahead of it.
  expect(cache).toMatchObject({ schemaSeenAt: Number.NEGATIVE_INFINITY, schemaCheckRequestedAt: null });

  cache.namesSeenAt = now;
  cache.trimPoints.splice(1);
  await trimOldRecentWrites(replica, cache, now);
  expect(await entries()).toBe(0);
});

test("an image that waits for the recent-writes log while it is trimmed is refused", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  const old = await takeReadVersion(t.replica);
  await applyRowImages(t.replica, table, {
    epoch: null,
    readVersion: await takeReadVersion(t.replica),
    ...orders(["rec1"], 2),
  });
  const upto = await takeReadVersion(t.replica);
  await using other = await holdingSession(t);
  const { session } = other;
  await session`begin`;
  await session`lock table public_swap._recent_writes in access exclusive mode`;
  const late = applyRowImages(t.replica, table, { epoch: null, readVersion: old, ...orders(["rec1"], 1) });
  await until(async () => (await waiting(other.pool)) === 1, { what: "the old image waits" });
  await session`select public_swap.trim_recent_writes(null, ${upto})`;
  await session`commit`;
  expect(await late).toMatchObject({ lost: ["rec1"], updated: 0 });
  expect(await prices(t.replica)).toEqual([{ id: "rec1", price: 2 }]);
});

test("a table that was dropped and returns has a structure number that it never had", async () => {
  await using t = await testReplica();
  const schemaTracker = [];
  const remembered = await build(t, { Price: "number" });
  schemaTracker.push(remembered.shape);
  const drop = async () => {
    const catalog = await loadCatalog(t.replica);
    await changeShape(t.replica, t.epoch, catalog, planSchema(catalog, { tables: [] }, SETTINGS));
  };
  await drop();
  // Restored at the source, with its field renamed, and renamed in place a second time.
  schemaTracker.push((await build(t, { Amount: "number" })).shape);
  const record = { id: "rec1", createdTime: `${CREATED}.000Z`, fields: { fld0: 42 } };
  const write = async () =>
    applyRowImages(t.replica, remembered, {
      epoch: null,
      readVersion: await takeReadVersion(t.replica),
      rows: mapRecords(compileMapper(remembered.spec), [record], []),
      gone: [],
      issues: [],
      records: [record],
    });
  await expect(write()).rejects.toMatchObject({ code: "shape_changed" });
  schemaTracker.push((await build(t, { Total: "number" })).shape);
  await drop();
  schemaTracker.push((await build(t, { Price: "number" })).shape);
  expect(new Set(schemaTracker).size).toBe(schemaTracker.length);
  await expect(write()).rejects.toMatchObject({ code: "shape_changed" });
});

test("structure numbers of a replica that an earlier version installed continue after its greatest", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  await t.replica.sql`update public_swap._tables set shape = ${table.shape + 500}`;
  await installReplica(t.ownerUrl, { schema: "public", role: t.role });
  expect((await build(t, { Amount: "number" })).shape).toBeGreaterThan(table.shape + 500);
});

test("a move takes over a record that a client wrote and a sweep has read since", async () => {
  await using t = await testReplica();
  const table = await build(t, { Price: "number" });
  await using written = await writtenElsewhere(t.replica);
  const readVersion = () => takeReadVersion(t.replica);
  await applyRowImages(t.replica, table, {
    epoch: null,
    readVersion: await readVersion(),
    ...orders(["rec1"], 1),
  });
  await applyRowImages(t.replica, table, {
    epoch: t.epoch,
    readVersion: await readVersion(),
    ...orders(["rec1", "rec2"], 2, false),
  });
  expect(await written.take()).toEqual(new Map([["tblO", new Set(["rec1"])]]));
});

test("I1: whatever commits a server loses, no row goes back to an image that was requested earlier than its own", async () => {
  await using t = await testReplica();
  const { replica } = t;
  const table = await build(t, { Price: "number" });
  let records = 0;
  const given = (text: string) =>
    text.split(" ").map((word) => ({ step: word.slice(0, -1), asker: Number(word.at(-1)) }));
  const steps = fc.array(
    fc.record({
      step: fc.constantFrom<string>("edit", "take", "read", "apply", "wait", "save", "lose"),
      asker: fc.nat(2),
    }),
    { minLength: 10, maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const id = `rec${records++}`;
      const askers = Array.from({ length: 3 }, () => ({ readVersion: 0, price: 0 }));
      let price = 1;
      let shown = 0;
      let saved = { replica: await saveReplica(replica, ["orders"]), shown };
      /** A write that waits for an image requested after it, as the proxy does after its own has lost. */
      let waits: { since: number; price: number } | undefined;
      for (const { step, asker: index } of all) {
        const asker = askers[index]!;
        if (step === "edit") price++;
        if (step === "take" && !asker.readVersion) {
          // Others take some, too: after a loss, the same numbers are applied versions.
          for (let taken = 0; taken < 3; taken++) asker.readVersion = await takeReadVersion(replica);
        }
        if (step === "read" && asker.readVersion && !asker.price) asker.price = price;
        if (step === "apply" && asker.price) {
          const image = orders([id], asker.price);
          await applyRowImages(replica, table, { epoch: null, readVersion: asker.readVersion, ...image });
          askers[index] = { readVersion: 0, price: 0 };
        }
        if (step === "wait") waits = { since: await takeReadVersion(replica), price };
        if (step === "save") saved = { replica: await saveReplica(replica, ["orders"]), shown };
        if (step === "lose") {
          await saved.replica.lose();
          ({ shown } = saved);
        }
        const [row] = await replica.sql<{ price: number; readVersion: number }[]>`
          select o.price::int as price, w.read_version as "readVersion"
          from public.orders as o join public_swap._recent_writes as w on w.record_id = o.id where o.id = ${id}`;
        expect(row?.price ?? 0).toBeGreaterThanOrEqual(shown);
        shown = row?.price ?? 0;
        if (row && waits && row.readVersion > waits.since) expect(shown).toBeGreaterThanOrEqual(waits.price);
      }
    }),
    {
      numRuns: 100,
      examples: [
        // An image that was requested before the loss, after a newer one.
        [given("take2 take0 read0 edit0 lose0 take1 read1 apply1 apply0")],
        // The same image does not answer a write that was made after the loss.
        [given("take2 take0 read0 lose0 edit0 wait0 apply0")],
      ],
    },
  );
});
