/** What a lease that follows another one of the same worker does again, and what it takes over. */
import { Registry } from "prom-client";
import { expect, inject, test, vi } from "vitest";
import { getBase } from "../../../core/control/bases";
import { CallCounter } from "../../../core/limiter";
import { holdLease, SettingsWatch, type SyncContext, syncMetrics } from "../../../core/sync/lease";
import { NotificationListener } from "../../../core/sync/modes/live";
import { BudgetWatch } from "../../../core/sync/pacing";
import { faultProxy } from "../../support/fault-proxy";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { unlimitedLimiter } from "../../support/unlimited-limiter";

const MINUTE_MS = 61_000;
const APPLY = ["apply_settings", "apply_link_views", "drop_builds", "index_changes"];
/** Whether a view or a reference waits: not asked if nothing is applied. */
const LOOKS = ["_views_to_refresh", "_references_to_check"];

test("a lease applies settings again if they, a table or the worker have changed, and after ten minutes", {
  timeout: 60_000,
}, async () => {
  await using releases = new AsyncDisposableStack();
  const cluster = inject("clusterUrl");
  const { hostname, port } = new URL(cluster);
  const line = releases.use(
    await faultProxy({ host: hostname, port: Number(port || 5432) }, { isPostgres: true }),
  );
  const fleet = releases.use(
    await startFleet({
      workers: 0,
      sandbox: { settings: { rateLimitOff: true } },
      env: { REPLICA_URL: line.over(cluster), SCHEMA_POLL_SECONDS: "1" },
    }),
  );
  const { ctx, sandbox } = fleet;
  const held: SyncContext = {
    ...ctx,
    limiter: unlimitedLimiter(),
    syncMetrics: syncMetrics(new Registry()),
    settingsWatch: new SettingsWatch(ctx),
    budgetWatch: new BudgetWatch(ctx),
    notifications: new NotificationListener(ctx),
    callCounter: new CallCounter(ctx),
  };
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  const sourceId = sandbox.control.createBase({
    tables: [{ name: "Tasks", fields, records: [{ fields: { Name: "one" } }] }],
  });
  const { id } = await fleet.connect(sourceId, { live: false });
  const stop = new AbortController();
  releases.defer(() => stop.abort());
  const statements: string[] = [];
  const record = (text: string) => {
    statements.push(text);
    return false;
  };
  line.hold(record, "before", stop.signal).catch(() => {});

  // A lease ends with the first sync that ends after a minute.
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  releases.defer(() => clock.mockRestore());

  let caches: Parameters<typeof holdLease>[2] = new Map();
  const sweeps = () => statements.filter((text) => text.includes(".complete_sync(")).length;
  /** Holds a lease for some sweeps. @returns which of the functions it has called */
  async function appliedIn(change?: () => Promise<unknown>): Promise<string[]> {
    statements.length = 0;
    const lease = holdLease(held, id, caches, { stop: stop.signal, kill: stop.signal });
    await until(() => sweeps() >= 1, { what: "a sweep" });
    if (change) {
      await change();
      const after = sweeps();
      await until(() => sweeps() > after, { what: "another sweep" });
    }
    aheadMs += MINUTE_MS;
    expect(await lease).toBe(0);
    expect(statements).toContainEqual(expect.stringContaining(".claim("));
    return APPLY.filter((name) => statements.some((text) => text.includes(`.${name}(`)));
  }
  async function expectNothingApplied(): Promise<void> {
    expect(await appliedIn()).toEqual([]);
    for (const look of LOOKS) expect(statements).not.toContainEqual(expect.stringContaining(look));
  }

  // The first lease creates the tables.
  for (let lease = 0; lease < 2; lease++) expect(await appliedIn()).toEqual(APPLY);
  await expectNothingApplied();

  await ctx.db`update bases set link_views = not link_views where id = ${id}`;
  expect(await appliedIn()).toEqual(["apply_settings", "apply_link_views"]);
  await expectNothingApplied();

  const [table] = sandbox.control.dump(sourceId).tables as { id: string }[];
  const owner = await fleet.owner(await getBase(ctx.db, id));
  const hasColumn = async () =>
    (await owner`select from information_schema.columns where column_name = 'new'`).length > 0;
  await appliedIn(async () => {
    sandbox.control.addField(sourceId, table!.id, { name: "New", type: "singleLineText" });
    await until(hasColumn, { what: "the column" });
  });
  expect(await appliedIn()).toEqual(APPLY);
  await expectNothingApplied();

  await owner`truncate tasks`;
  expect(await appliedIn()).toEqual(APPLY);
  expect((await owner`select from tasks`).length).toBe(1);
  await expectNothingApplied();

  caches = new Map();
  expect(await appliedIn()).toEqual(APPLY);
  await expectNothingApplied();
  aheadMs += 10 * MINUTE_MS;
  expect(await appliedIn()).toEqual(APPLY);
});
