/** What a lease does with what its worker learns of the base: at each read if something is left to do, and else on a change. */
import { expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { getBase } from "../../../core/control/bases";
import { createSyncHost } from "../../../core/control/sync-host";
import { createLogger } from "../../../core/log";
import type { Platform } from "../../../core/source";
import { LeasedBase } from "../../../core/sync/lease/leased-base";
import { BaseCache } from "../../../core/sync/state";
import { authByHeader } from "../../support/console";
import { caller, GOOD_KEY, testControl } from "../../support/control-support";
import { until } from "../../support/poll";

const POLL_MS = 20;
const times = { startedAt: new Date(), completedAt: new Date() };

/** A leased base without a worker. `reads` waits until the facts were read that many times more. */
async function lease() {
  const stack = new AsyncDisposableStack();
  const control = stack.use(await testControl());
  const { db, secrets } = control.ctx;
  const { token } = await control.addAccount("owner@example.com");
  const call = caller(consoleApp(control.ctx, authByHeader()));
  const body = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne" };
  const { id } = (await call("POST", "/api/v1/bases", { token, body })).body as { id: string };
  let unreadable = 0;
  const ctx = {
    db,
    log: createLogger("silent", "test"),
    secrets: {
      ...secrets,
      decrypt(...given: Parameters<typeof secrets.decrypt>) {
        if (unreadable > 0 && unreadable-- > 0) throw new Error("the key cannot be read now");
        return secrets.decrypt(...given);
      },
    },
  };
  const host = createSyncHost({ ...control.ctx, ...ctx }, POLL_MS);
  const other = stack.use(host.watch(id, () => false));
  const reads = async (count = 1) => {
    for (let nth = 0; nth < count; nth++) {
      const from = performance.now();
      await until(() => other.readAt > from, { what: "the facts are read", intervalMs: 5 });
    }
  };
  const base = await getBase(db, id);
  const never = new AbortController().signal;
  const platform = { connect: () => ({}) } as unknown as Platform;
  const leased = stack.use(
    await LeasedBase.open({
      ctx: { log: ctx.log, host },
      base,
      platform,
      cache: new BaseCache(1),
      stop: never,
      kill: never,
    }),
  );
  await reads(2);
  const failToRead = (times: number) => {
    unreadable = times;
  };
  return { db, base, leased, secrets, reads, failToRead, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("a change that people make, and a sync that begins, are reported once", async () => {
  await using scene = await lease();
  const { db, base, leased, reads } = scene;
  await reads(2);
  let calls = 0;
  leased.onFacts = () => void calls++;
  await db`update bases set catch_up_requested_at = now(), turbo = true where id = ${base.id}`;
  await until(() => leased.settings.turbo, { what: "the change is known" });
  expect(leased.catchUpRequestedAt).toBeNull();
  using _sync = leased.begin({ ...base, sync: { kind: "sweep", ...times, durationMs: 1 } }, false);
  expect(leased.catchUpRequestedAt).not.toBeNull();
  await reads(2);
  const seen = calls;
  expect(seen).toBeGreaterThan(1);
  await reads(3);
  expect(calls).toBe(seen);
});

test("a requested schema check is asked for at each read until it is completed", async () => {
  await using scene = await lease();
  const { db, base, leased, reads } = scene;
  let calls = 0;
  leased.onSchemaCheck = () => void calls++;
  await db`update bases set schema_check_requested_at = now() where id = ${base.id}`;
  await until(() => calls >= 3, { what: "it is seen again and again" });
  await db`update bases set schema_check_requested_at = null where id = ${base.id}`;
  await reads(2);
  const seen = calls;
  await reads(3);
  expect(calls).toBe(seen);
});

test("a sync with a base that was read before the latest change is interrupted", async () => {
  await using scene = await lease();
  const { db, base, leased, reads } = scene;
  await db`update bases set resync_requested_at = now() where id = ${base.id}`;
  await reads(3);
  using sync = leased.begin(base, false);
  await until(() => sync.stop.aborted, { what: "it is interrupted" });
});

test("a Resync that a first sync did not stop for ends the rest after it", async () => {
  await using scene = await lease();
  const { db, base, leased, reads } = scene;
  {
    using sync = leased.begin(base, false);
    sync.isBuilding = true;
    await db`update bases set resync_requested_at = now() where id = ${base.id}`;
    await reads(3);
    expect(sync.stop.aborted).toBe(false);
  }
  const from = performance.now();
  await leased.rest(60_000);
  expect(performance.now() - from).toBeLessThan(30_000);
});

test("a new key that cannot be read is tried again, although nothing else changes", async () => {
  await using scene = await lease();
  const { db, base, leased, secrets, failToRead } = scene;
  failToRead(2);
  const key = secrets.encrypt("patNew.key", `bases.api_key:${base.id}`);
  await db`update bases set encrypted_api_key = ${key} where id = ${base.id}`;
  await until(() => leased.apiKey === "patNew.key", { what: "the new key is used" });
});
