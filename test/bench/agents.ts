/**
 * Measures agents: a query over 100,000 rows with an index at `/mcp`, next to the same query by a SQL client in turns; and a
 * proposal of 100 updates from its approval until SQL has them, against the source's limit of five calls a second.
 *
 * Console, proxy and source are separate processes. Run: `bun run bench agents`
 */
import { createAgent } from "../../core/control/agents";
import { getBase, pause, updateSettings } from "../../core/control/bases";
import { createChangeSet, decideChangeSet } from "../../core/control/change-sets";
import { agentClient } from "../support/agent-client";
import { startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { putFirst } from "../support/priority";
import { exactCpuSeconds } from "../support/process-usage";
import { quantile } from "../support/quantile";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { table } from "./print";
import { startPrinting, startProxyProcess } from "./proxy";

const ROWS = 100_000;
const QUERIES = 300;
/** Before it measures: code is compiled, and the shape of the base is known. */
const WARM_UP = 50;
const UPDATES = 100;
const SOURCE_MS = { minMs: 80, maxMs: 80 };
const MOST = { queryMs: 30, ofLimit: 1.1, beyondMs: 500 };

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  const port = await freePort();
  const env = { CONSOLE_URL: `http://localhost:${port}`, CONSOLE_PORT: String(port) };
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url }));
  putFirst(source.pid);
  const { ctx } = fleet;
  const upstreams = `api.airtable.com=${source.url},content.airtable.com=${source.url}`;
  await startProxyProcess(releases, fleet, upstreams, { REPLICA_URL: ctx.config.replicaUrl! });
  const console_ = await startPrinting(releases, [`${import.meta.dir}/../../apps/console/main.ts`], {
    ...env,
    DATABASE_URL: ctx.config.databaseUrl!,
    REPLICA_URL: ctx.config.replicaUrl!,
    SECRET_KEY: ctx.config.secretKey!,
    DATA_DIR: ctx.config.dataDir,
    UPSTREAMS: upstreams,
    LIVE_PINGS: "off",
    API_REQUESTS_PER_MINUTE: "1000000",
    LOG_LEVEL: "info",
  });
  const sourceBaseId = await source.generate({ records: 200, tables: 1, seed: 1 });
  const connected = await fleet.connect(sourceBaseId, {});
  await fleet.synced(connected.id);
  await updateSettings(ctx, connected, { changeSets: true });
  await pause(ctx, connected);
  const base = await getBase(ctx.db, connected.id);
  const as = { ...ctx, actor: { kind: "system", name: "bench" } as const };

  const owner = await fleet.owner(base);
  await owner`
    insert into projects (id, created_time, name)
    select 'recBench' || lpad(n::text, 9, '0'), now(), 'Row ' || n from generate_series(1, ${ROWS}::int) as n`;
  await owner`create index if not exists bench_name on projects (name)`;
  await owner`analyze projects`;

  const { agent, token } = await createAgent(as, base.accountId, {
    name: "Bench",
    mayPropose: true,
    bases: [{ baseId: base.id }],
  });
  await ctx.db`update agents set limits = '{"calls": 1000000}' where id = ${agent.id}`;
  await using client = await agentClient(`http://localhost:${port}`, token);
  const reader = await fleet.reader(base);
  const timed = async (work: () => Promise<unknown>) => {
    const from = performance.now();
    await work();
    return performance.now() - from;
  };
  const statement = (nth: number) => `select id, name from projects where name = 'Row ${(nth * 331) % ROWS}'`;
  const byAgent = async (nth: number) => {
    const { isError, text } = await client.call("query", { sql: statement(nth) });
    if (isError) throw new Error(text);
  };
  for (let nth = 0; nth < WARM_UP; nth++) {
    await byAgent(nth);
    await reader.unsafe(statement(nth));
  }
  const [agents, clients]: [number[], number[]] = [[], []];
  const before = exactCpuSeconds(console_.pid);
  for (let nth = 0; nth < QUERIES; nth++) {
    agents.push(await timed(() => byAgent(nth)));
    clients.push(await timed(() => reader.unsafe(statement(nth))));
  }
  const cpu = ((exactCpuSeconds(console_.pid) - before) * 1000) / QUERIES;

  await source.settings({ latency: { before: SOURCE_MS } });
  const rows = await owner<{ id: string }[]>`
    select id from projects where id not like 'recBench%' order by id limit ${UPDATES}`;
  const proposal = await createChangeSet(as, base, {
    isProposal: true,
    agent: { id: agent.id, mostProposals: 10 },
    operations: rows.map(({ id }, nth) => ({
      operation: "update",
      table: "Projects",
      record: id,
      fields: { Name: `Proposed ${nth}` },
    })),
  });
  const applied = await timed(async () => {
    await decideChangeSet(as, base, proposal.id, "approve");
    await until(
      async () => {
        const [has] = await reader<{ count: number }[]>`
          select count(*)::int as count from projects where name like 'Proposed %'`;
        return has!.count === UPDATES;
      },
      { what: "the updates are in SQL", timeoutMs: 30_000 },
    );
  });
  const limit = ((UPDATES / 10) * 1000) / 5;
  const most = limit * MOST.ofLimit + MOST.beyondMs;
  const p50 = quantile(agents, 0.5);
  table(
    ["figure", "measured", "at most"],
    [
      ["a query at /mcp, p50, ms", p50.toFixed(1), MOST.queryMs],
      ["a query at /mcp, p99, ms", quantile(agents, 0.99).toFixed(1), ""],
      ["the same by a SQL client, p50, ms", quantile(clients, 0.5).toFixed(1), ""],
      ["CPU of the console for a query, ms", cpu.toFixed(2), ""],
      [`${UPDATES} approved updates until they are in SQL, ms`, applied.toFixed(0), most.toFixed(0)],
    ],
  );
  const isWithin = p50 <= MOST.queryMs && applied <= most;
  console.log(isWithin ? "\nmet" : "\nNOT MET");
  return isWithin;
}
