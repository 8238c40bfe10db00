/** A source that counts calls by the month, and refuses more than its monthly cap. */
import { expect, test, vi } from "vitest";
import { activeBaseIds, getBase, requestResync } from "../../../core/control/bases";
import { nextMonth } from "../../../core/control/budgets";
import { toBaseJson } from "../../../core/control/status/base-json";
import { expectWell, needingAttention } from "../../support/base-states";
import { expectEqualToSource } from "../../support/equal-to-source";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { dumpTable } from "../../support/replica";

vi.setConfig({ testTimeout: 60_000 });

/** Requests that may have been in transit when the first one was refused. */
const ON_THE_WAY = 5;

test.concurrent.for([false, true])(
  "a spent monthly cap stops the base (rapid: %s), reports until when, and affects no other base",
  async (rapid) => {
    await using fleet = await startFleet({
      sandbox: { settings: { rateLimitOff: true } },
      env: { SCHEMA_POLL_SECONDS: "0.1" },
    });
    const { ctx, sandbox } = fleet;
    const sourceId = sandbox.control.generate({ records: 300, tables: 10 });
    const connected = await fleet.connect(sourceId, { turbo: true, rapid });
    await fleet.synced(connected.id);
    const reader = await fleet.reader(connected);
    const [table] =
      connected.tables.length > 0 ? connected.tables : (await getBase(ctx.db, connected.id)).tables;
    const rows = await dumpTable(reader, table!.name);
    const refused = () => sandbox.control.log(sourceId).filter((entry) => entry.status === 429).length;

    const { id: fault } = sandbox.control.addFault({ base: sourceId, kind: "billing_limit" });
    const capped = await needingAttention(fleet, connected.id);
    const nextAt = nextMonth(new Date()).toISOString();
    expect(capped.error).toMatchObject({
      code: "source_billing_limit",
      message: expect.stringContaining(`Syncing is paused until ${nextAt.slice(0, 10)}`),
    });
    const json = toBaseJson(capped, new Date());
    expect(json).toMatchObject({ error: { until: nextAt }, indicator: { color: "red" } });
    expect(json.indicator.reason).toContain(nextAt.slice(0, 10));
    expect(await dumpTable(reader, table!.name)).toEqual(rows);

    const key = `airtable:${sourceId}`;
    // In rapid mode, a cycle may complete after the background sweep was refused; the next one records the cap again.
    const block = await until(
      async () => (await ctx.db`select reason, blocked_until from quota_blocks where key = ${key}`)[0],
      { what: "the spent cap is recorded", timeoutMs: 30_000 },
    );
    expect(block.reason).toBe("billing_limit");
    expect(Math.abs(block.blocked_until.getTime() - Date.parse(nextAt))).toBeLessThan(1000);
    const [window] = await ctx.db`select blocked_until from quota_keys where key = ${key}`;
    expect(window!.blocked_until).toBeLessThan(Date.now());
    await until(async () => (await activeBaseIds(ctx.db)).length === 0, { what: "the base is stopped" });
    expect(refused()).toBeLessThanOrEqual(ON_THE_WAY);

    sandbox.control.clearFaults(fault);
    await requestResync(ctx, capped);
    expectWell(await fleet.synced(connected.id));
    expect(await ctx.db`select from quota_blocks where key = ${key}`).toEqual([]);
    await expectEqualToSource(fleet, capped);
  },
);
