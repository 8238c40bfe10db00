/** Budgets on a real control plane: shared caps, spent ones, throttling, and the purposes of calls. */
import { expect, test, vi } from "vitest";
import {
  activeBaseIds,
  type Base,
  getBase,
  requestResync,
  updateSettings,
} from "../../../core/control/bases";
import {
  allowancesOf,
  budgetOf,
  createWorkspace,
  nextMonth,
  quotaUse,
  updateWorkspace,
  type Workspace,
} from "../../../core/control/budgets";
import { indicatorOf } from "../../../core/control/status";
import { createRateLimiter } from "../../../core/limiter";
import { expectWell, needingAttention } from "../../support/base-states";
import { expectEqualToSource } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 90_000 });

const never = new AbortController().signal;
const thisMonth = `${new Date().toISOString().slice(0, 7)}-01`;

const callsTo = (fleet: Fleet, sourceId: string) => fleet.sandbox.control.log(sourceId).length;

function startBudgetFleet() {
  return startFleet({ sandbox: { settings: { rateLimitOff: true } }, env: { SCHEMA_POLL_SECONDS: "3600" } });
}

/** Puts the base into the workspace. */
async function place(fleet: Fleet, base: Base, { id }: Pick<Workspace, "id">): Promise<Base> {
  return updateSettings(fleet.ctx, base, { workspaceId: id });
}

const soon = (what: string) => ({ what, timeoutMs: 30_000 });

async function spent(fleet: Fleet, baseId: string): Promise<Base> {
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, baseId);
      return base.error?.code === "budget_spent" && base.restsUntil && base;
    },
    soon(`${baseId} has nothing left`),
  );
}

test.concurrent("two bases of a workspace share its cap: calls of one reduce what the other has, and clients continue", async () => {
  await using fleet = await startBudgetFleet();
  const { ctx, sandbox } = fleet;
  const sources = [1, 2].map(() => sandbox.control.generate({ records: 900, tables: 3 }));
  const bases = await Promise.all(sources.map((id) => fleet.connect(id, { turbo: true, paused: true })));
  const { accountId } = bases[0]!;
  const [cap, reserve] = [90, 20];
  const workspace = await createWorkspace(ctx, accountId, {
    name: "Shared",
    plan: "custom",
    callsPerMonth: cap,
    reserve,
  });
  for (const base of bases) await updateSettings(ctx, await place(fleet, base, workspace), { paused: false });
  // The first syncs start at once; then there is a long pause.
  const [first, second] = bases as [Base, Base];
  expect(first.sourceUserId).toMatch(/^usr/);
  for (const { id } of bases) {
    const resting = await until(
      async () => {
        const base = await getBase(ctx.db, id);
        return base.sync && base.restsUntil && base;
      },
      soon(`${id} rests`),
    );
    expectWell(resting);
    expect(resting.restsUntil!.getTime() - Date.now()).toBeGreaterThan(60_000);
    await expectEqualToSource(fleet, resting);
  }
  expect(await activeBaseIds(ctx.db)).toEqual([]);

  // One of them gets a sync request again and again, which ignores the pace.
  for (;;) {
    const before = await getBase(ctx.db, first.id);
    if (before.error) break;
    await requestResync(ctx, before);
    await until(async () => {
      const now = await getBase(ctx.db, first.id);
      return now.attemptedAt! > before.attemptedAt!;
    }, soon("another sync has ended"));
  }
  const stopped = await spent(fleet, first.id);
  const endsOn = nextMonth(new Date()).toISOString().slice(0, 10);
  expect(stopped.error!.message).toContain(`workspace "Shared"`);
  expect(stopped.error!.message).toContain(`until ${endsOn}`);
  expect(indicatorOf(stopped, new Date())).toMatchObject({ color: "yellow" });
  await requestResync(ctx, second);
  await spent(fleet, second.id);
  const used = sources.reduce((sum, id) => sum + callsTo(fleet, id), 0);
  expect(used).toBeLessThanOrEqual(cap - reserve);
  expect(used).toBeGreaterThan(cap - reserve - 10);
  // Counts are up to 10 s behind.
  await until(
    async () => (await budgetOf(ctx.db, workspace))?.used.sync === used,
    soon("all calls are counted"),
  );
  expect(await budgetOf(ctx.db, workspace)).toMatchObject({
    state: "spent",
    used: { sync: used, client: 0 },
  });

  // Clients have their reserve, and are not refused beyond it either.
  const limiter = createRateLimiter(ctx);
  for (let call = 0; call < 30; call++) {
    await limiter.acquireClient(`airtable:${sources[call % 2]}`, { deadlineMs: 30_000, signal: never });
  }
  // Counts what it still has to.
  await limiter.close();
  expect(await budgetOf(ctx.db, workspace)).toMatchObject({
    state: "over",
    used: { client: 30 },
    forecast: { endsInside: false },
  });

  await updateWorkspace(ctx, workspace, { plan: "business" });
  for (const { id } of bases) expectWell(await fleet.synced(id));
});

test.concurrent("a spent budget is full again when the month ends", async () => {
  await using fleet = await startBudgetFleet();
  const { ctx, sandbox } = fleet;
  const sourceId = sandbox.control.generate({ records: 100, tables: 1 });
  const base = await fleet.connect(sourceId, { paused: true });
  const workspace = await createWorkspace(ctx, base.accountId, { name: "Small", plan: "free" });
  await ctx.db`
    insert into quota_calls (key, month, sync) values (${`airtable:${sourceId}`}, ${thisMonth}, 790)`;
  await updateSettings(ctx, await place(fleet, base, workspace), { paused: false });
  const stopped = await spent(fleet, base.id);
  expect(callsTo(fleet, sourceId)).toBe(0);
  expect(await activeBaseIds(ctx.db)).toEqual([]);
  // As the control plane sees it next month.
  await ctx.db`update quota_calls set month = month - interval '1 month'`;
  await ctx.db`update bases set rests_until = now() where id = ${stopped.id}`;
  expectWell(await fleet.synced(base.id));
  const [later] = await allowancesOf(ctx.db, [base.id], nextMonth(new Date()));
  expect(later).toMatchObject({ left: 1000 - 10 - 200, bases: 1 });
});

test.concurrent("a workspace that the source blocks is shown as blocked, and continues when its month ends", async () => {
  await using fleet = await startBudgetFleet();
  const { ctx, sandbox } = fleet;
  const sourceId = sandbox.control.generate({ records: 100, tables: 2 });
  const base = await fleet.connect(sourceId);
  await fleet.synced(base.id);
  const { calls } = sandbox.control.cap(sourceId);
  sandbox.control.cap(sourceId, { cap: calls + 3, overCap: "block" });
  const blocked = await needingAttention(fleet, base.id);
  expect(blocked.error!.code).toBe("source_billing_limit");
  const { blocked: shown } = await quotaUse(ctx.db, base);
  expect(shown!.reason).toBe("billing_limit");
  expect(Math.abs(shown!.until.getTime() - nextMonth(new Date()).getTime())).toBeLessThan(1000);
  sandbox.control.advanceClock(nextMonth(new Date()).getTime() - Date.now());
  expect(await activeBaseIds(ctx.db)).toEqual([]);
  await ctx.db`update bases set attempted_at = attempted_at - interval '1 month' where id = ${base.id}`;
  expectWell(await fleet.synced(base.id));
  await until(async () => (await quotaUse(ctx.db, base)).blocked === null, { what: "nothing blocks it" });
});

test.concurrent("beyond a Team cap, requests are limited to two per second, so that the source refuses none", async () => {
  await using fleet = await startFleet({ env: { SCHEMA_POLL_SECONDS: "3600" } });
  const { ctx, sandbox } = fleet;
  const sourceId = sandbox.control.generate({ records: 100, tables: 1 });
  const base = await fleet.connect(sourceId);
  const workspace = await createWorkspace(ctx, base.accountId, { name: "Team", plan: "team" });
  await fleet.synced(base.id);
  const key = `airtable:${sourceId}`;
  await ctx.db`
    insert into quota_calls as c (key, month, client) values (${key}, ${thisMonth}, 100000)
    on conflict (key, month) do update set client = c.client + excluded.client`;
  await place(fleet, base, workspace);
  await spent(fleet, base.id);
  await until(async () => (await quotaUse(ctx.db, base)).slowed, { what: "the key is throttled" });
  expect((await quotaUse(ctx.db, base)).slowed).toEqual({ until: nextMonth(new Date()), isCertain: true });
  expect(await budgetOf(ctx.db, workspace)).toMatchObject({ state: "over", slowed: { isCertain: true } });

  sandbox.control.cap(sourceId, { cap: 100_000, calls: 100_000, overCap: "slow" });
  const limiter = createRateLimiter(ctx);
  const statuses = await Promise.all(
    Array.from({ length: 7 }, async () => {
      await limiter.acquireClient(key, { deadlineMs: 20_000, signal: never });
      const headers = { authorization: `Bearer ${sandbox.key}` };
      return (await fetch(`${sandbox.url}/v0/meta/bases/${sourceId}/tables`, { headers })).status;
    }),
  );
  expect(statuses).toEqual(Array(7).fill(200));

  // Another plan changes the pace at once.
  await updateWorkspace(ctx, workspace, { plan: "business" });
  expect((await quotaUse(ctx.db, base)).slowed).toBeNull();
});

test.concurrent("all calls are counted by their purpose", async () => {
  await using fleet = await startBudgetFleet();
  const { ctx, sandbox } = fleet;
  const sourceId = sandbox.control.generate({ records: 500, tables: 3 });
  const base = await fleet.connect(sourceId, { turbo: true });
  await fleet.synced(base.id);
  await updateSettings(ctx, base, { rapid: true });
  await until(async () => (await getBase(ctx.db, base.id)).sync?.kind === "rapid", soon("turns go on"));
  await fleet.workers[0]!.stop();
  const workspace = await createWorkspace(ctx, base.accountId, { name: "Any", plan: "business" });
  await place(fleet, base, workspace);
  const log = sandbox.control.log(sourceId);
  const schema = log.filter(({ path }) => path.startsWith("/v0/meta/")).length;
  const looks = log.filter(({ path }) => path.includes("LAST_MODIFIED")).length;
  expect(looks).toBeGreaterThan(0);
  const { used } = (await budgetOf(ctx.db, workspace))!;
  expect(used.byKind).toEqual({ schema, sweep: log.length - schema - looks, records: looks });
  expect(used.sync).toBe(log.length);
});
