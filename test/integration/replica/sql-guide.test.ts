/** Every example of the SQL guide, as a customer runs it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Fleet, startFleet } from "../../support/fleet";
import { repoRoot } from "../../support/source-files";

const guide = readFileSync(join(repoRoot, "docs/sql.md"), "utf8");
const examples = [...guide.matchAll(/```sql\n([^`]+)```/g)].map(([, sql = ""]) => sql.trim());
/** Examples for which the sample base has no data. */
const MAY_BE_EMPTY = /_sync_issues|_sync_history|^listen/;

let fleet: Fleet;
let run: (sql: string) => Promise<unknown[]>;

beforeAll(async () => {
  fleet = await startFleet();
  // As created by `up --sandbox`.
  const sourceBase = fleet.sandbox.control.generate({
    name: "Project Tracker",
    records: 1000,
    tables: 4,
    seed: 1,
  });
  const base = await fleet.connect(sourceBase, { turbo: true, linkViews: true, history: true, notify: true });
  const reader = await fleet.reader(base);
  await fleet.synced(base.id);
  run = (sql) => reader.unsafe(sql);
}, 60_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

test("there are examples", () => expect(examples.length).toBeGreaterThan(10));

test.each(examples)("%s", async (sql) => {
  const rows = await run(sql);
  if (!MAY_BE_EMPTY.test(sql)) expect(rows.length).toBeGreaterThan(0);
});
