/**
 * I1, I2, I3 combined: clients write through two proxy processes, users edit and delete the same records in the app,
 * sweeps and rebuilds run, and every connection has random latency. The source knows in which order each record
 * changed; SQL is read continuously and must never go back, nor behind what a client was answered.
 *
 * CONSISTENCY_SECONDS sets the duration; the suite's own is 10.
 */
import { expect, test } from "vitest";
import type { Base } from "../../../core/control/bases";
import { createBusyBase, LATENCY, liftLimiter, violations } from "../../support/consistency";
import { expectEqualToSource } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { slowness } from "../../support/machine-speed";

const SECONDS = Number(process.env.CONSISTENCY_SECONDS ?? 10);
/** The time for detecting the broken rule. */
const BROKEN_SECONDS = 60;
const REBUILD_EVERY_MS = 1500;

async function busyFleet(): Promise<{ fleet: Fleet; base: Base }> {
  const fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true, latency: LATENCY } } });
  await liftLimiter(fleet);
  const base = await fleet.connect(createBusyBase(fleet.sandbox.control), { turbo: true });
  return { fleet, base: await fleet.synced(base.id) };
}

test("I1-I3: whatever overlaps, SQL never goes back, and equals the source at the end", {
  timeout: (SECONDS + 60) * 1000 * slowness(),
  tags: "once",
}, async () => {
  const { fleet, base } = await busyFleet();
  await using _ = fleet;
  expect(await violations(fleet, base, { seconds: SECONDS, rebuildEveryMs: REBUILD_EVERY_MS })).toEqual([]);
  await fleet.synced(base.id);
  expect(await expectEqualToSource(fleet, base)).toBeGreaterThan(100);
});

test("with the read version rule disabled, the test fails", {
  timeout: (BROKEN_SECONDS + 60) * 1000,
}, async () => {
  const { fleet, base } = await busyFleet();
  await using _ = fleet;
  const owner = await fleet.owner(base);
  const [{ definition } = { definition: "" }] = await owner<{ definition: string }[]>`
    select pg_get_functiondef(p.oid) as definition from pg_proc as p
    where p.proname = 'make_apply' and p.pronamespace = 'public_swap'::regnamespace`;
  const broken = definition.replace(
    "j.applied_version > p_read_version",
    "j.applied_version > p_read_version and false",
  );
  expect(broken).not.toBe(definition);
  await owner.unsafe(broken);
  await owner`select public_swap.make_apply(table_id) from public_swap._tables`;
  const storm = { seconds: BROKEN_SECONDS, rebuildEveryMs: REBUILD_EVERY_MS };
  expect((await violations(fleet, base, storm)).length).toBeGreaterThan(0);
});
