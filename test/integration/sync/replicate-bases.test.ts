/** The main task, end to end: a sandbox as the source, a worker, Postgres; every cell is compared. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { liftLimiter } from "../../support/consistency";
import { dataFolder, noDataReason } from "../../support/data";
import { expectEqualToSource } from "../../support/equal-to-source";
import { startFleet } from "../../support/fleet";

/** Without a rate limit: this tests what arrives, not when. */
const QUICK = { settings: { rateLimitOff: true } };

const bases = ["cmip7-data-request", "unlocking-the-airwaves", "unlocking-the-airwaves/earlier-2021-05-04"];

test.for(bases)(
  "every cell of %s is in SQL as at the source",
  { timeout: 60_000 },
  async (folder, { skip }) => {
    if (!dataFolder) return skip(noDataReason);
    await using fleet = await startFleet({ sandbox: QUICK, workers: 0 });
    await liftLimiter(fleet);
    await fleet.addWorker();
    const base = await fleet.connect(fleet.sandbox.control.load({ folder: join(dataFolder, folder) }), {
      turbo: true,
    });
    const synced = await fleet.synced(base.id);
    expect(await expectEqualToSource(fleet, synced)).toBeGreaterThan(10_000);
    expect(synced.issues).toEqual([]);
  },
);

test("every cell of a generated base is in SQL as at the source, also after edits", {
  timeout: 60_000,
}, async () => {
  await using fleet = await startFleet({ sandbox: QUICK, env: { SCHEMA_POLL_SECONDS: "0.1" } });
  const { control } = fleet.sandbox;
  const sourceId = control.generate({ records: 900, tables: 3, fieldsPerTable: 40, seed: 7 });
  const base = await fleet.connect(sourceId, { turbo: true });
  await expectEqualToSource(fleet, await fleet.synced(base.id));

  const [table, other] = control.dump(sourceId).tables;
  control.deleteRecords(
    sourceId,
    table!.id,
    table!.records.slice(0, 3).map((record) => record.id),
  );
  control.renameTable(sourceId, other!.id, "Renamed / Table");
  await expectEqualToSource(fleet, await fleet.synced(base.id));
});
