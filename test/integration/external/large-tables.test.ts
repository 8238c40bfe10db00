/** A customer's server with a table of more rows than one answer may have. */
import { afterAll, expect, test } from "vitest";
import { externalServer } from "../../../core/control/placement/external-url";
import { gateway } from "../../../core/external";
import {
  claimEpoch,
  compareBuild,
  installReplica,
  loadCatalog,
  openReplica,
  planSchema,
  rowIds,
  startBuild,
} from "../../../core/replica";
import { freshDatabase } from "../../support/database";
import { putBuild } from "../../support/put-build";
import { sourceTable } from "../../support/source-records";

const ROWS = 100_001;
const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

afterAll(() => gateway.stop());

test("the ids of a large table are read, and the rows that the source has lost are found", {
  timeout: 60_000,
}, async () => {
  await using database = await freshDatabase();
  const url = externalServer(database.url, "loopback");
  await installReplica(url, { schema: "airtable" });
  const replica = openReplica({ url, schema: "airtable" });
  try {
    const epoch = await claimEpoch(replica);
    const tables = [sourceTable("tblP", "People", { Name: "text" })];
    const [spec] = planSchema(new Map(), { tables }, SETTINGS).rebuild;
    const built = async () => {
      const build = await startBuild(replica, epoch, spec!);
      await build.append([{ id: "rec0", created_time: "2024-05-01T12:34:56", name: "Ada" }]);
      return build;
    };
    expect(await putBuild({ replica, epoch }, await built(), undefined)).toBe(true);
    await database.sql`
      insert into airtable.people (id, created_time)
      select 'recxxxxxxxx' || n, now() from generate_series(100001, ${100_000 + ROWS - 1}::int) as n`;
    const live = (await loadCatalog(replica)).get("tblP")!;
    let count = 0;
    for await (const batch of rowIds(replica, live)) count += batch.length;
    expect(count).toBe(ROWS);
    const compare = async (build: Awaited<ReturnType<typeof built>>) =>
      compareBuild(replica, epoch, build, live, Number.MAX_SAFE_INTEGER);
    const build = await built();
    // So many that comparing all at once is as good.
    expect(await compare(build)).toBe(null);
    // A list of 19,000 ids is larger than one value may be.
    await database.sql`delete from airtable.people where id > 'recxxxxxxxx119000'`;
    const found = await compare(build);
    expect(found?.ids).toHaveLength(19_000);
    expect(new Set(found!.ids).size).toBe(19_000);
  } finally {
    await replica.close();
  }
});
