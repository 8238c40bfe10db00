/** How long a lease goes on, and what ends it. */
import { expect, inject, test, vi } from "vitest";
import { getBase } from "../../../core/control/bases";
import { holdLease } from "../../../core/sync/lease";
import { faultProxy } from "../../support/fault-proxy";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { syncContext } from "../../support/sync-context";

const MINUTE_MS = 61_000;

test("a lease is renewed, and applies optional features again every half hour, unless there is something to repair", {
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
  const held = syncContext(ctx);
  const fields = [{ name: "Name", type: "singleLineText" as const }];
  const sourceId = sandbox.control.createBase({
    tables: [{ name: "Tasks", fields, records: [{ fields: { Name: "one" } }] }],
  });
  const { id } = await fleet.connect(sourceId, { live: false });
  const stop = new AbortController();
  releases.defer(() => stop.abort());
  const statements: string[] = [];
  const record = (text: string) => {
    // The installation defines the functions that are counted here.
    if (!text.includes("create or replace function")) statements.push(text);
    return false;
  };
  line.hold(record, "before", stop.signal).catch(() => {});

  // A lease ends with the first sync that ends after a minute.
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  releases.defer(() => clock.mockRestore());

  const caches: Parameters<typeof holdLease>[2] = new Map();
  let isOver = Promise.resolve<number | null>(0);
  const calls = (name: string) => statements.filter((text) => text.includes(`.${name}(`)).length;
  const completed = () => statements.filter((text) => text.includes(".mark_sync($1, true")).length;
  const applied = () => statements.filter((text) => text.includes("apply_row_images")).length;
  /** Starts a lease, and waits for a sweep. */
  async function begin(): Promise<void> {
    statements.length = 0;
    isOver = holdLease(held, id, caches, { stop: stop.signal, kill: stop.signal });
    await until(() => completed() >= 1, { what: "a sweep" });
  }
  /** Lets a minute pass. @returns whether the lease goes on */
  async function isRenewed(): Promise<boolean> {
    const [renewals, sweeps] = [calls("renew"), completed()];
    const ended = isOver.then(() => "over");
    aheadMs += MINUTE_MS;
    const goesOn = until(() => calls("renew") > renewals && completed() > sweeps + 1, {
      what: "the lease is renewed",
    }).then(() => "renewed");
    const end = await Promise.race([goesOn, ended]);
    if (end === "renewed") return true;
    goesOn.catch(() => {});
    expect(await isOver).toBe(0);
    return false;
  }
  const [table] = sandbox.control.dump(sourceId).tables as { id: string }[];
  const owner = await fleet.owner(await getBase(ctx.db, id));
  const rows = () => owner`select from tasks`;

  // It creates the table, and writes rows: that makes no difference.
  await begin();
  sandbox.control.createRecords(sourceId, table!.id, [{ fields: { Name: "two" } }]);
  await until(async () => (await rows()).length === 2, { what: "the record is in SQL" });
  for (let minute = 1; minute < 3; minute++) expect(await isRenewed()).toBe(true);
  expect({ claims: calls("claim"), applied: calls("apply_settings") }).toEqual({ claims: 1, applied: 1 });
  aheadMs += 28 * MINUTE_MS;
  expect(await isRenewed()).toBe(true);
  await until(() => calls("apply_settings") === 2, { what: "optional features are applied again" });

  // Another lease restores what is missing.
  for (const statement of [
    "truncate tasks",
    "alter table tasks drop column name cascade",
    "drop view __sync_meta__",
    "update public_swap._state set renewals = renewals - 1",
  ]) {
    expect(await isRenewed()).toBe(true);
    await owner.unsafe(statement);
    expect(await isRenewed(), statement).toBe(false);
    await begin();
    const read = () => owner`select name from tasks, __sync_meta__`.catch(() => []);
    await until(async () => (await read()).length === 2, { what: `repaired after "${statement}"` });
    // Without a lost commit, only rows that are gone are written.
    if (statement.startsWith("drop view")) expect(applied()).toBe(0);
  }
  // Commits were lost: all rows have been compared.
  expect(applied()).toBeGreaterThan(0);
});
