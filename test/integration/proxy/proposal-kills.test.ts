/** Proxies are killed while they carry out a proposal: afterwards each of its operations is made once, and is in SQL. */
import { expect, test, vi } from "vitest";
import { createAgent } from "../../../core/control/agents";
import { getBase, updateSettings } from "../../../core/control/bases";
import { createChangeSet, decideChangeSet, getChangeSet } from "../../../core/control/change-sets";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";

vi.setConfig({ testTimeout: 120_000 });

const UPDATES = 40;
const CREATES = 30;
/** How many operations have a result when the proxy is killed. */
const KILLED_AT = [5, 25, 45];

test("kills during the application of a proposal lose and double nothing", async () => {
  await using fleet = await startFleet();
  const { ctx, sandbox } = fleet;
  const { control } = sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Hours", type: "number", options: { precision: 0 } },
  ];
  const records = Array.from({ length: UPDATES }, (_, nth) => ({
    fields: { Name: `Task ${nth}`, Hours: 1 },
  }));
  const sourceId = control.createBase({ name: "Work", tables: [{ name: "Tasks", fields, records }] });
  const connected = await fleet.synced((await fleet.connect(sourceId)).id);
  await updateSettings(ctx, connected, { changeSets: true });
  const base = await getBase(ctx.db, connected.id);
  const as = { ...ctx, actor: { kind: "user", name: "owner@example.org" } as const };
  const asked = { name: "Claude", mayPropose: true, bases: [{ baseId: base.id }] };
  const { agent } = await createAgent(as, base.accountId, asked);
  const set = await createChangeSet(as, base, {
    isProposal: true,
    agent: { id: agent.id, mostProposals: 10 },
    operations: [
      ...control.dump(sourceId).tables[0]!.records.map(({ id }, nth) => ({
        operation: "update" as const,
        table: "Tasks",
        record: id,
        fields: { Hours: 100 + nth },
        expected: { Hours: 1 },
      })),
      ...Array.from({ length: CREATES }, (_, nth) => ({
        operation: "create" as const,
        table: "Tasks",
        fields: { Name: `New ${nth}` },
      })),
    ],
  });
  control.settings({ latency: { before: { minMs: 100, maxMs: 100 }, after: { minMs: 100, maxMs: 100 } } });
  const start = async (): Promise<Program> => {
    const proxy = startProgram("apps/proxy/main.ts", [], {
      DATABASE_URL: ctx.config.databaseUrl!,
      REPLICA_URL: ctx.config.replicaUrl!,
      SECRET_KEY: ctx.config.secretKey!,
      DATA_DIR: ctx.config.dataDir,
      UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
      UPSTREAM_TIMEOUT_MS: "2000",
      PROXY_PORT: "0",
      LOG_LEVEL: "info",
    });
    await proxy.says(/"port":\d+/);
    return proxy;
  };
  const counts = async () => (await getChangeSet(ctx.db, base.id, set.id)).counts;

  let proxy = await start();
  await decideChangeSet(as, base, set.id, "approve");
  for (const applied of KILLED_AT) {
    await until(async () => ((await counts()).applied ?? 0) >= applied, { what: `${applied} are applied` });
    await proxy[Symbol.asyncDispose]();
    proxy = await start();
    // The next proxy need not wait until the dead one's time is over.
    await ctx.db`update change_sets set held_until = now() where id = ${set.id} and ended_at is null`;
  }
  await using _last = proxy;
  const ended = await until(
    async () => {
      const now = await getChangeSet(ctx.db, base.id, set.id);
      return now.endedAt === null ? undefined : now;
    },
    { what: "the set has ended", timeoutMs: 60_000 },
  );
  expect(ended).toMatchObject({ state: "applied", counts: { applied: UPDATES + CREATES } });
  const after = control.dump(sourceId).tables[0]!;
  const idOf = (name: string) =>
    (after.fields as { id: string; name: string }[]).find((one) => one.name === name)!.id;
  const cells = after.records.map((record) => [record.fields[idOf("Name")], record.fields[idOf("Hours")]]);
  expect(cells.filter(([name]) => String(name).startsWith("Task")).map(([, hours]) => hours)).toEqual(
    Array.from({ length: UPDATES }, (_, nth) => 100 + nth),
  );
  const made = cells.filter(([name]) => String(name).startsWith("New")).map(([name]) => name);
  expect(made.sort()).toEqual(Array.from({ length: CREATES }, (_, nth) => `New ${nth}`).sort());
  const sql = await fleet.reader(base);
  const rows = async () =>
    (await sql`select name, hours::int from tasks`) as unknown as { name: string; hours: number }[];
  await until(async () => (await rows()).length === UPDATES + CREATES, { what: "all records are in SQL" });
  expect((await rows()).filter(({ hours }) => hours >= 100)).toHaveLength(UPDATES);
});
