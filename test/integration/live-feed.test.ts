/** The feed of a base, end to end: a sandbox as the source, a console that takes pings, Postgres. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { deleteBase, pingSecret, updateSettings } from "../../core/control";
import { createSecretBox } from "../../core/secrets";
import type { FeedBatch } from "../../core/sync/live/feed-types";
import { type FeedStack, type LiveBase, startFeedStack } from "../support/feed-stack";
import { until } from "../support/poll";

vi.setConfig({ testTimeout: 60_000 });

const DAY_MS = 24 * 3600_000;

let stack: FeedStack;
const signal = new AbortController().signal;

beforeAll(async () => {
  stack = await startFeedStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const control = () => stack.fleet.sandbox.control;
const consoleUrl = () => stack.fleet.ctx.config.consoleUrl;

/** Ids that a batch names as created. */
function created(batch: FeedBatch): string[] {
  return [...batch.changes.tables.values()].flatMap((table) => table.created);
}

/** A base with a feed that has been opened, and a reader for it. */
async function opened() {
  const live = await stack.connect();
  const worker = live.worker();
  const feed = await worker.open();
  const reader = await worker.reader();
  return { live, worker, feed, read: () => feed.read(reader) };
}

/** Its gap is of the time since `from`. */
async function expectNewHook(live: LiveBase, oldId: string, from: Date): Promise<void> {
  const kept = (await live.kept())!;
  expect(kept).toMatchObject({ state: "on", cursor: 1 });
  expect(kept.hookId).not.toBe(oldId);
  expect(kept.gapSince!.getTime()).toBeGreaterThanOrEqual(from.getTime());
  expect(live.hooks().map(({ id, isHookEnabled }) => [id, isHookEnabled])).toEqual([[kept.hookId, true]]);
}

async function sql(query: string): Promise<void> {
  await stack.fleet.ctx.db.unsafe(query);
}

describe("a hook", () => {
  test("is made with an address of this base, a sealed secret and a gap before it", async () => {
    const from = new Date();
    const { live, worker } = await opened();
    const [hook] = live.hooks();
    expect(hook).toMatchObject({ notificationUrl: `${consoleUrl()}/hooks/airtable/${live.base.id}` });
    await expectNewHook(live, "", from);
    expect(worker.asked).toEqual({ hooks: 2 });
    expect((await live.kept())!.sealedSecret).toMatch(/^v1\./);
    expect((await live.now()).live).toMatchObject({
      state: "on",
      reason: "",
      gapSince: expect.any(Date),
      missed: 0,
    });
  });

  test("is adopted by the next worker without a call, and read on from what is durable", async () => {
    const { live, feed, read } = await opened();
    const first = live.create("first");
    const batch = await read();
    expect(created(batch)).toEqual([first]);
    await feed.save(batch.cursor);
    const second = live.create("second");
    expect(created(await read())).toEqual([second]);

    const next = live.worker();
    const adopted = await next.open();
    expect(next.asked).toEqual({});
    expect(created(await adopted.read(await next.reader()))).toEqual([second]);
    expect(next.asked).toEqual({ payloads: 1 });
  });

  test("is refreshed days before it ends, by the source's clock", async () => {
    const { live, worker, read } = await opened();
    await read();
    const before = (await live.kept())!.expiresMs!;
    control().advanceClock(3.9 * DAY_MS);
    await read();
    expect(worker.asked.hooks).toBe(2);
    expect((await live.kept())!.expiresMs).toBe(before);
    control().advanceClock(0.2 * DAY_MS);
    await read();
    // The source's time is known from an answer, so it may take one to notice.
    await read();
    expect(worker.asked.hooks).toBe(3);
    expect((await live.kept())!.expiresMs! - before).toBeGreaterThan(4 * DAY_MS);
  });

  const ends: [string, (live: LiveBase, id: string) => void | Promise<void>][] = [
    ["deleted by somebody", (live, id) => control().webhooks.delete(live.sourceId, id)],
    ["in error: INVALID_HOOK", (live, id) => control().webhooks.fail(live.sourceId, id, "INVALID_HOOK")],
    [
      "in error: INVALID_FILTERS",
      (live, id) => control().webhooks.fail(live.sourceId, id, "INVALID_FILTERS"),
    ],
    ["expired", () => control().advanceClock(7.5 * DAY_MS)],
    ["gone for longer than the source keeps anything", () => control().advanceClock(20 * DAY_MS)],
  ];
  test.each(ends)("%s is made anew, with a gap, and told of goes on", async (_, end) => {
    const { live, feed, read } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    const first = live.create("first");
    const before = await read();
    expect(created(before)).toEqual([first]);
    await feed.closeGap(new Date());
    expect(feed.gapSince).toBeNull();
    const from = new Date();
    await end(live, id);

    let batch = await read();
    // An expired hook can still be read: it is the refresh that says so.
    for (let tries = 0; !batch.hasGap && tries < 3; tries++) batch = await read();
    expect(batch.hasGap).toBe(true);
    await expectNewHook(live, id, from);
    expect(feed.gapSince).toEqual((await live.kept())!.gapSince);

    const second = live.create("second");
    const after = await read();
    expect(created(after)).toEqual([second]);
    expect(after.from).toBeGreaterThanOrEqual(before.cursor);
    // E1: what was known by the old hook's numbers does not move the new one's cursor.
    await feed.save(before.cursor);
    expect((await live.kept())!.cursor).toBe(1);
    await feed.save(after.cursor);
    expect((await live.kept())!.cursor).toBe(2);
    expect((await read()).payloads).toBe(0);
  });

  test("that only had trouble is kept, with a gap for what it did not tell", async () => {
    const { live, feed, read } = await opened();
    await feed.closeGap(new Date());
    const [{ id } = { id: "" }] = live.hooks();
    control().webhooks.fail(live.sourceId, id, "INTERNAL_ERROR");
    const batch = await read();
    expect(batch).toMatchObject({ hasGap: true, error: "INTERNAL_ERROR" });
    expect(await live.kept()).toMatchObject({ hookId: id, gapSince: feed.gapSince });
    expect(feed.gapSince).not.toBeNull();
    expect((await read()).hasGap).toBe(false);
  });

  test.each(["skip", "refuse"] as const)(
    "whose payloads are gone (the source: %s) leaves a gap",
    async (oldCursor) => {
      const { live, feed, read } = await opened();
      await read();
      await feed.closeGap(new Date());
      const [{ id } = { id: "" }] = live.hooks();
      live.create("lost");
      // Kept alive by another reader, who does not care for what is gone.
      for (let days = 0; days < 8; days += 4) {
        control().advanceClock(4 * DAY_MS);
        await fetch(`${stack.fleet.sandbox.url}/v0/bases/${live.sourceId}/webhooks/${id}/payloads?cursor=2`, {
          headers: { authorization: `Bearer ${stack.fleet.sandbox.key}` },
        });
      }
      live.create("kept");
      control().settings({ webhooks: { oldCursor } });
      try {
        expect((await read()).hasGap).toBe(true);
      } finally {
        control().settings({ webhooks: { oldCursor: "skip" } });
      }
      expect((await live.kept())!.gapSince).toEqual(feed.gapSince);
      expect(feed.gapSince).not.toBeNull();
      const next = live.create("next");
      const batches = [await read(), await read()];
      expect(batches.flatMap(created)).toContain(next);
    },
  );

  test("whose pings the source gave up is told to ping again", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    const path = `/v0/bases/${live.sourceId}/webhooks/${id}/enableNotifications`;
    await fetch(stack.fleet.sandbox.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${stack.fleet.sandbox.key}` },
      body: JSON.stringify({ enable: false }),
    });
    expect(live.hooks()[0]).toMatchObject({ areNotificationsEnabled: false });
    await sql(
      `update live_feeds set checked_at = now() - interval '7 hours' where base_id = '${live.base.id}'`,
    );
    await live.worker().open();
    expect(live.hooks()).toMatchObject([{ id, areNotificationsEnabled: true }]);
  });

  test("whose secret cannot be read is made anew", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    const stranger = createSecretBox([Buffer.alloc(32, 7).toString("base64")]).seal("secret", "elsewhere");
    await sql(`update live_feeds set sealed_secret = '${stranger}' where base_id = '${live.base.id}'`);
    const from = new Date();
    await live.worker().open();
    await expectNewHook(live, id, from);
    expect(await pingSecret(stack.fleet.ctx, live.base.id)).toBeTruthy();
  });

  test("that a crash left behind is taken away when the next is made", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    await sql(`delete from live_feeds where base_id = '${live.base.id}'`);
    await live.worker().open();
    await expectNewHook(live, id, new Date(0));
  });

  test("that cannot be noted is not left at the source, and is made when it can", async () => {
    const live = await stack.connect();
    const worker = live.worker();
    await sql("create function no() returns trigger language plpgsql as $$ begin raise 'no'; end $$");
    await sql("create trigger no before insert on live_feeds for each row execute function no()");
    expect(await worker.tryOpen()).toBeNull();
    expect(live.hooks()).toEqual([]);
    await sql("drop trigger no on live_feeds");
    await live.worker().open();
    expect(live.hooks()).toHaveLength(1);
  });

  test("another process has made meanwhile is gone on with", async () => {
    const { live, read } = await opened();
    const other = live.worker();
    const [{ id } = { id: "" }] = live.hooks();
    control().webhooks.delete(live.sourceId, id);
    const theirs = await other.open();
    await theirs.read(await other.reader());
    const hookId = (await live.kept())!.hookId!;
    const batch = await read();
    expect(batch.hasGap).toBe(true);
    expect(await live.kept()).toMatchObject({ hookId });
    const id2 = live.create("told to both");
    expect(created(await read())).toEqual([id2]);
  });

  test("is polled where pings are switched off: one that has an address gives way", async () => {
    const { live } = await opened();
    const { config } = stack.fleet.ctx;
    const [{ id } = { id: "" }] = live.hooks();
    const from = new Date();
    config.livePings = "off";
    try {
      const worker = live.worker();
      const feed = await worker.open();
      expect(feed.hasPings).toBe(false);
      await expectNewHook(live, id, from);
      expect(live.hooks()).toMatchObject([{ notificationUrl: null }]);
      expect((await live.now()).live).toMatchObject({ by: "poll" });
      expect(await live.worker().tryOpen()).not.toBeNull();
      const made = live.create("polled");
      expect(created(await feed.read(await worker.reader()))).toEqual([made]);
    } finally {
      config.livePings = "auto";
    }
  });

  test("that the source cannot give just now leaves the base to sweeps, and is tried again", async () => {
    const live = await stack.connect();
    const worker = live.worker();
    const fault = control().addFault({ base: live.sourceId, path: "webhooks", kind: "status_503" });
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 5 });
    // Not again at once, and nothing is said of the key.
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 5 });
    expect((await live.now()).live).toBeNull();
    control().clearFaults(fault.id);
    await live.worker().open();
  });

  test("whose making was not answered is not left behind", async () => {
    const live = await stack.connect();
    const path = "webhooks$";
    control().addFault({
      base: live.sourceId,
      path,
      method: "POST",
      kind: "status_503",
      when: "after",
      count: 1,
    });
    expect(await live.worker().tryOpen()).toBeNull();
    expect(live.hooks()).toHaveLength(1);
    const from = new Date();
    await live.worker().open();
    await expectNewHook(live, "", from);
  });

  test("that gives nothing, like those made after it, is left for sweeps after a few", async () => {
    const { live, worker, read } = await opened();
    const fault = control().addFault({ base: live.sourceId, path: "payloads", kind: "not_found" });
    const reads = async () => {
      for (let count = 0; count < 20; count++) expect((await read()).hasGap).toBe(true);
    };
    await expect(reads()).rejects.toMatchObject({ code: "sync_stopped" });
    expect(await worker.tryOpen()).toBeNull();
    expect(live.hooks()).toHaveLength(1);
    control().clearFaults(fault.id);
  });

  test("nothing is lost where the control plane takes no notes: they are made later", async () => {
    const { live, feed, read } = await opened();
    live.create("one");
    const { cursor } = await read();
    await sql("alter table live_feeds rename to away");
    try {
      await feed.save(cursor);
      await feed.addMissed(2);
      await feed.noteDue(new Date(), { waiting: 1 });
      await feed.closeGap(new Date());
      expect(feed.gapSince).not.toBeNull();
    } finally {
      await sql("alter table away rename to live_feeds");
    }
    await feed.addMissed(1);
    await feed.save(cursor);
    expect(await live.kept()).toMatchObject({ cursor: 2 });
    expect((await live.now()).live).toMatchObject({ missed: 3, missedAt: expect.any(Date) });
  });
});

describe("a ping", () => {
  async function post(path: string, body: string, mac: string | null) {
    const response = await fetch(`${consoleUrl()}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(mac && { "x-airtable-content-mac": mac }) },
      body,
    });
    return { status: response.status, text: await response.text() };
  }
  const macOf = (secret: string, body: string) =>
    `hmac-sha256=${createHmac("sha256", Buffer.from(secret, "base64")).update(body).digest("hex")}`;

  test("wakes a feed that waits, at once; until one came nobody relies on them", async () => {
    const { live, feed, read } = await opened();
    await read();
    expect((await live.kept())!.isPinged).toBe(false);
    const waiting = feed.wakeUp(30_000, signal);
    const at = performance.now();
    const id = live.create("ping");
    expect(await waiting).toBe(true);
    expect(performance.now() - at).toBeLessThan(1000);
    expect(feed.hasPings).toBe(true);
    expect(created(await read())).toEqual([id]);
    expect((await live.now()).live).toMatchObject({ by: "ping" });
    // That the console can be reached holds for all bases.
    expect((await (await stack.connect()).worker().open()).hasPings).toBe(false);
    const other = await opened();
    expect((await other.live.worker().open()).hasPings).toBe(true);
  });

  test("that came between two leases is heard by the next", async () => {
    const { live, feed, read } = await opened();
    await read();
    await feed.noteDue(new Date(), { waiting: 0 });
    const next = live.worker();
    live.create("between");
    await until(async () => (await live.kept())!.isPinged, { what: "the ping is noted" });
    const adopted = await next.open();
    expect(await adopted.wakeUp(30_000, signal)).toBe(true);
  });

  test("sent twice, and again later, is as good as one", async () => {
    const { live, feed, read } = await opened();
    control().settings({ webhooks: { pingDuplication: 1 } });
    try {
      const id = live.create("twice");
      expect(await feed.wakeUp(30_000, signal)).toBe(true);
      expect(created(await read())).toEqual([id]);
      await until(() => control().webhooks.pings(live.sourceId).length === 2, { what: "both were sent" });
    } finally {
      control().settings({ webhooks: { pingDuplication: 0 } });
    }
    const secret = (await pingSecret(stack.fleet.ctx, live.base.id))!;
    for (let time = 0; time < 3; time++)
      expect(await post(`/hooks/airtable/${live.base.id}`, "{}", macOf(secret, "{}"))).toEqual({
        status: 204,
        text: "",
      });
    expect((await read()).payloads).toBe(0);
  });

  test("that is forged, of another base, too large or of nobody is refused and wakes nobody", async () => {
    const { live, feed } = await opened();
    const other = (await opened()).live;
    const secret = (await pingSecret(stack.fleet.ctx, live.base.id))!;
    const path = `/hooks/airtable/${live.base.id}`;
    const body = JSON.stringify({ base: { id: live.sourceId } });
    const refusals = [
      await post(path, body, null),
      await post(path, body, macOf(Buffer.alloc(32).toString("base64"), body)),
      await post(path, `${body} `, macOf(secret, body)),
      await post(`/hooks/airtable/${other.base.id}`, body, macOf(secret, body)),
      await post("/hooks/airtable/bas_nobody", body, macOf(secret, body)),
      await post(`/hooks/airtable/${"x".repeat(2000)}`, body, macOf(secret, body)),
    ];
    for (const { status, text } of refusals) {
      expect(status).toBe(401);
      expect(JSON.parse(text)).toMatchObject({
        error: { code: "unauthorized", message: expect.stringMatching(/sign/) },
      });
    }
    const large = "x".repeat(65_537);
    const tooLarge = await post(path, large, macOf(secret, large));
    expect([tooLarge.status, JSON.parse(tooLarge.text).error.code]).toEqual([422, "invalid_request"]);
    expect(await feed.wakeUp(200, signal)).toBe(false);
    expect(await live.kept()).toMatchObject({ isPinged: false });
    // The right one is of any size up to the limit, and of any kind.
    const most = "x".repeat(65_536);
    expect((await post(path, most, macOf(secret, most))).status).toBe(204);
    expect(await feed.wakeUp(30_000, signal)).toBe(true);
  });
});

describe("freshness", () => {
  test("a hook that tells of nothing is found, SQL is right again, and another hook is made", async () => {
    const { live, worker, feed, read } = await opened();
    const { compare } = await worker.swept();
    await feed.closeGap(new Date());
    const rows = await stack.fleet.owner(await live.now());
    const names = async () => (await rows`select name from things order by name`).map(({ name }) => name);
    expect(await compare(feed)).toEqual({ records: 3, stale: 0 });
    expect((await live.now()).live).toMatchObject({ comparedAt: expect.any(Date), staleSince: null });

    const [{ id } = { id: "" }] = live.hooks();
    control().webhooks.silence(live.sourceId, id);
    live.create("unheard");
    expect((await read()).payloads).toBe(0);
    const from = new Date();
    expect(await compare(feed)).toMatchObject({ stale: 1 });
    expect(await names()).toEqual(["N0", "N1", "N2", "unheard"]);
    expect((await live.now()).live).toMatchObject({ staleSince: expect.any(Date), gapSince: feed.gapSince });
    expect(feed.gapSince!.getTime()).toBeGreaterThanOrEqual(from.getTime());

    expect(await feed.wakeUp(30_000, signal)).toBe(true);
    expect((await read()).hasGap).toBe(true);
    await expectNewHook(live, id, from);
    const heard = live.create("heard");
    expect(created(await read())).toEqual([heard]);
    expect((await live.now()).live!.staleSince).not.toBeNull();
    await feed.closeGap(new Date());
    expect((await live.now()).live).toMatchObject({ staleSince: null, gapSince: null });
  });

  test("what is missing from the feed and known to be says nothing of the hook: a sweep is to find it", async () => {
    const { live, worker, feed, read } = await opened();
    const { compare } = await worker.swept();
    await feed.closeGap(new Date());
    const [{ id } = { id: "" }] = live.hooks();
    control().webhooks.silence(live.sourceId, id);
    live.create("unheard");
    control().webhooks.silence(live.sourceId, id, false);
    control().webhooks.fail(live.sourceId, id, "INTERNAL_ERROR");
    expect((await read()).hasGap).toBe(true);
    expect(await compare(feed)).toEqual({ records: 0, stale: 0 });
    expect(await live.kept()).toMatchObject({ hookId: id });
  });

  test("what the feed tells of in time, or is known to wait, is not stale", async () => {
    const { live, worker, feed } = await opened();
    const { compare, sweep } = await worker.swept();
    await feed.closeGap(new Date());
    live.create("waiting");
    expect(await compare(feed, { isPending: () => true })).toMatchObject({ stale: 0 });
    // A sweep brings it while it is waited for.
    const comparing = compare(feed, { graceMs: 3000 });
    expect(await feed.wakeUp(30_000, signal)).toBe(true);
    const rows = await stack.fleet.owner(await live.now());
    const before = await rows`select count(*)::int as n from things`;
    expect(before).toEqual([{ n: 3 }]);
    await sweep();
    expect((await comparing)!.stale).toBe(0);
    expect(feed.gapSince).toBeNull();
    expect((await live.now()).live!.staleSince).toBeNull();
  });
});

describe("a key that may not", () => {
  const scopes = ["data.records:read", "schema.bases:read"];

  async function connectedWith(key: string) {
    const live = await stack.connect();
    await updateSettings(stack.fleet.ctx, live.base, { apiKey: key });
    return live;
  }

  test("manage webhooks: what to tick is said, it is not asked again, and the next key is", async () => {
    const live = await connectedWith(control().createKey({ scopes }));
    const worker = live.worker();
    expect(await worker.tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("webhook:manage"),
    });
    expect(worker.asked).toEqual({ hooks: 1 });
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 1 });
    await sql(
      `update live_feeds set refused_at = now() - interval '61 minutes' where base_id = '${live.base.id}'`,
    );
    expect(await worker.tryOpen()).toBeNull();
    expect(worker.asked).toEqual({ hooks: 2 });

    await updateSettings(stack.fleet.ctx, live.base, { apiKey: stack.fleet.sandbox.key });
    await worker.open();
    expect((await live.now()).live).toMatchObject({ state: "on", reason: "" });
  });

  test("make them for want of the creator's role: that is said", async () => {
    const live = await connectedWith(control().createKey({ bases: "edit" }));
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("creator"),
    });
  });

  test("make one more, since the base is full: how many there are is said, and no other's is touched", async () => {
    const live = await stack.connect();
    for (let count = 0; count < 10; count++) {
      await fetch(`${stack.fleet.sandbox.url}/v0/bases/${live.sourceId}/webhooks`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack.fleet.sandbox.key}` },
        body: JSON.stringify({ specification: { options: { filters: { dataTypes: ["tableData"] } } } }),
      });
    }
    const hooks = live.hooks();
    expect(hooks).toHaveLength(10);
    expect(await live.worker().tryOpen()).toBeNull();
    expect((await live.now()).live).toMatchObject({
      state: "refused",
      reason: expect.stringContaining("10 webhooks"),
    });
    expect(live.hooks()).toEqual(hooks);
  });

  test("any more: the lease ends, and the next one sweeps", async () => {
    const { live, feed, worker } = await opened();
    const key = control().createKey({ scopes });
    await sql(`update bases set sealed_api_key = sealed_api_key where id = '${live.base.id}'`);
    await updateSettings(stack.fleet.ctx, live.base, { apiKey: key });
    await expect(feed.read(await worker.reader())).rejects.toMatchObject({ code: "sync_stopped" });
    expect(await worker.tryOpen()).toBeNull();
  });
});

describe("at the source nothing is left", () => {
  test("when live mode is switched off; switched on again there is a new hook", async () => {
    const { live, feed } = await opened();
    await updateSettings(stack.fleet.ctx, live.base, { live: false });
    expect(live.hooks()).toEqual([]);
    expect((await live.now()).live).toBeNull();
    // A worker that has not noticed yet makes no other.
    const reader = await live.worker().reader();
    await expect(feed.read(reader)).rejects.toMatchObject({ code: "sync_stopped" });
    expect(live.hooks()).toEqual([]);
    expect(await live.kept()).toBeUndefined();
    await updateSettings(stack.fleet.ctx, live.base, { live: true });
    await live.worker().open();
    expect(live.hooks()).toHaveLength(1);
  });

  test("when the base is deleted", async () => {
    const { live } = await opened();
    expect(live.hooks()).toHaveLength(1);
    await deleteBase(stack.fleet.ctx, live.base);
    expect(live.hooks()).toEqual([]);
  });

  test("when a key takes the place that cannot see the hook; one that can keeps it", async () => {
    const { live } = await opened();
    const [{ id } = { id: "" }] = live.hooks();
    await updateSettings(stack.fleet.ctx, live.base, { apiKey: control().createKey() });
    expect(live.hooks()).toMatchObject([{ id }]);
    expect(await live.kept()).toMatchObject({ hookId: id, state: "on" });
    // An integration sees its own hooks only.
    await updateSettings(stack.fleet.ctx, live.base, { apiKey: control().createKey({ isOAuth: true }) });
    expect(live.hooks()).toEqual([]);
    expect(await live.kept()).toMatchObject({ hookId: null, state: "making" });
    const from = new Date();
    await live.worker().open();
    await expectNewHook(live, id, from);
  });
});
