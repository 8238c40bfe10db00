/**
 * The documented way to serve a base with PostGraphile, run with its own packages: every table and view is a type, and
 * answers with its rows.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readSchema } from "../../../core/source/airtable/schema";
import {
  POSTGRAPHILE_FOLDER,
  serveWithPostgraphile,
  withoutPostgraphile,
} from "../../support/postgraphile/serve";
import { createSample, createSamples, filesOf, relationsOf, type Sample } from "../../support/sample-bases";
import { repoRoot } from "../../support/source-files";
import { node22 } from "../../support/tools/generators";
import { pinned, runs } from "../../support/tools/table";

const TIMEOUT_MS = 300_000;
/** Without `TOOLS`, only the sample base whose names are alike, and the example of the docs. */
const ALL = Boolean(process.env.TOOLS);

const page = readFileSync(join(repoRoot, "docs/graphql-and-rest.md"), "utf8");
const section = page.slice(page.indexOf("## PostGraphile"), page.indexOf("## Hasura"));
const example = (language: string) => new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(section)![1]!;

let releases: AsyncDisposableStack;
let samples: Sample[];
let missing: string | undefined;

beforeAll(async () => {
  missing = withoutPostgraphile();
  releases = new AsyncDisposableStack();
  samples = await createSamples(releases, ALL ? undefined : ["names alike"]);
  for (const { sql, url } of samples) {
    await sql.unsafe(OWN_RELATIONS);
    await sql.unsafe(`grant select on all tables in schema public to ${new URL(url).username}`);
  }
}, TIMEOUT_MS);
afterAll(() => releases.disposeAsync());

const { version } = pinned(POSTGRAPHILE_FOLDER, "postgraphile");
const runtimes = ["Bun", "Node 22"] as const;
const onRuntime = (runtime: (typeof runtimes)[number]) => ({
  ...runs({ name: `PostGraphile, on ${runtime}`, version }),
  timeout: TIMEOUT_MS,
});

/** Why PostGraphile cannot be run there. */
function missingOn(runtime: (typeof runtimes)[number]): string | undefined {
  if (missing !== undefined || runtime === "Bun") return missing;
  if (!ALL) return "Node 22 has 120 MB: bun run tools installs and runs it";
  return node22() === undefined ? "npm has no Node 22 for this machine" : undefined;
}

for (const runtime of runtimes) {
  test(
    `every table, view and column of a base is in the schema, and answers: ${runtime}`,
    onRuntime(runtime),
    async ({ skip }) => {
      const reason = missingOn(runtime);
      skip(reason !== undefined, reason);
      for (const sample of samples) await checkSchema(sample, runtime);
    },
  );
}

async function checkSchema(sample: Sample, runtime: (typeof runtimes)[number]): Promise<void> {
  const { sql, tables } = sample;
  const { types, log } = await serve(sample, runtime);
  expect([sample.name, log]).toEqual([sample.name, ""]);
  const counted = [...relationsOf(tables), "_sync_meta", "__sync_meta__", "_sync_issues"].map(
    async (name) => {
      const [row] = await sql`select count(*)::int as n from ${sql(name)}`;
      return row!.n;
    },
  );
  expect(types.map(({ rows }) => rows).sort()).toEqual((await Promise.all(counted)).sort());
  for (const { tableId, columns } of tables) {
    const type = types.find(({ description }) => description.includes(tableId))!;
    // The node's id, the row's id, and the time of creation.
    expect([tableId, type.fields.length]).toEqual([tableId, columns.length + 3]);
  }
}

/** As a replica has them. */
const OWN_RELATIONS = `
  create table _sync_meta (started_at timestamptz, completed_at timestamptz, duration_last interval);
  create view __sync_meta__ as select * from _sync_meta;
  create table _sync_issues (table_name text, record_id text, field text, value text, reason text, seen_at timestamptz);
  insert into _sync_meta values (now(), now(), '1 s')`;

test("the example of the docs answers, on Bun and on Node 22", { timeout: TIMEOUT_MS }, async ({ skip }) => {
  skip(missing !== undefined, missing);
  const text = (id: string, name: string) => ({ id, name, type: "singleLineText" });
  const link = {
    ...{ id: "fldPT000000000000", name: "Tasks", type: "multipleRecordLinks" },
    options: { linkedTableId: "tblT0000000000000" },
  };
  const tables = [
    {
      ...{ id: "tblP0000000000000", name: "Projects", primaryFieldId: "fldPN000000000000" },
      fields: [text("fldPN000000000000", "Name"), link],
    },
    {
      ...{ id: "tblT0000000000000", name: "Tasks", primaryFieldId: "fldTT000000000000" },
      fields: [text("fldTT000000000000", "Title")],
    },
  ];
  const record = (id: string, fields: Record<string, unknown>) => ({
    ...{ id: id.padEnd(17, "0"), createdTime: "2026-01-01T00:00:00.000Z", fields },
  });
  const ids = ["recT2", "recT1"].map((id) => id.padEnd(17, "0"));
  const sample = await createSample(releases, "docs", readSchema({ tables }), ({ name }) =>
    name === "Projects"
      ? [record("recP", { fldPN000000000000: "p", fldPT000000000000: ids })]
      : ["recT1", "recT2"].map((id) => record(id, { fldTT000000000000: id })),
  );
  const task = (position: number, title: string) => ({ position, taskByTasksId: { title } });
  for (const runtime of runtimes.filter((one) => missingOn(one) === undefined)) {
    const { answer } = await serve(sample, runtime, example("graphql"));
    expect(answer).toEqual({
      allProjects: {
        nodes: [{ name: "p", projectsTasksByProjectsId: { nodes: [task(1, "recT2"), task(2, "recT1")] } }],
      },
    });
  }
});

function serve(sample: Sample, runtime: (typeof runtimes)[number], query?: string) {
  const [{ text: tags }] = filesOf("postgraphile", sample);
  const config = example("js");
  const on = runtime === "Bun" ? undefined : node22();
  return serveWithPostgraphile({ url: sample.url, config, tags, query, runtime: on });
}
