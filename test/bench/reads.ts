/**
 * Measures reads that the proxy answers from a replica, over a table of 10,000 records: latency, and CPU time of proxy and
 * database, per request. Kinds of reads alternate, so that each is compared with a plain list in the same run.
 *
 * Run: `bun run bench reads`
 */
import { readdirSync, readFileSync } from "node:fs";
import postgres from "postgres";
import { pause } from "../../core/control/bases";
import { startFleet } from "../support/fleet";
import { quantile } from "../support/quantile";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { table } from "./print";
import { startPrinting } from "./proxy";

const RECORDS = 10_000;
const ROUNDS = 60;
/** The CPU time of a read, ms. A read that takes longer is worth less than the call that it saves. */
const LIMIT_MS = 20;

const FIELDS = ["Name", "Amount", "Done", "Due", "Status"].map((name) => `fields%5B%5D=${name}`).join("&");
const sort = (...keys: string[]) =>
  keys.map((field, index) => `sort%5B${index}%5D%5Bfield%5D=${field}`).join("&");
const filter = (formula: string) => `filterByFormula=${encodeURIComponent(formula)}`;
const READS: Record<string, string> = {
  list: "",
  "filter on text": filter("{Status} = 'Done'"),
  "search in text": filter("FIND('urgent', LOWER({Notes}))"),
  "filter on a date": filter("IS_AFTER({Due}, '2024-06-01')"),
  "sort by a number": sort("Amount"),
  "sort by a choice and a date": sort("Status", "Due"),
  "sort with a filter": `${sort("Due", "Amount")}&${filter("{Done}")}`,
};

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  await source.settings({ rateLimitOff: true });
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url }));
  const proxy = await startPrinting(releases, [`${import.meta.dir}/../../apps/proxy/main.ts`], {
    DATABASE_URL: server.url,
    SECRET_KEY: fleet.ctx.config.secretKey!,
    DATA_DIR: fleet.ctx.config.dataDir,
    UPSTREAMS: `api.airtable.com=${source.url}`,
    PROXY_PORT: "0",
    LOG_LEVEL: "info",
  });
  const id = await fleet.sandbox.generate({ records: RECORDS, tables: 1, seed: 1 });
  const base = await fleet.connect(id);
  await fleet.synced(base.id);
  const path = `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${id}/Projects`;
  const read = async (query: string) => {
    const answer = await fetch(`${path}?${FIELDS}&${query}`, {
      headers: { authorization: `Bearer ${fleet.sandbox.key}`, "x-basetide-read": "replica" },
    });
    await answer.text();
    return answer.headers.get("x-basetide-answered-by");
  };
  await read("");
  await using monitor = asDisposable(postgres(server.url, { max: 1 }));
  const figures = Object.keys(READS).map((name) => ({
    name,
    ms: [] as number[],
    proxyMs: 0,
    sqlMs: 0,
    by: "",
  }));
  for (let round = -5; round < ROUNDS; round++) {
    for (const figure of figures) {
      const [before, from] = [await cpuOf(proxy.pid, monitor.sql), performance.now()];
      figure.by = (await read(READS[figure.name]!)) ?? "";
      const took = performance.now() - from;
      const after = await cpuOf(proxy.pid, monitor.sql);
      if (round < 0) continue;
      figure.ms.push(took);
      figure.proxyMs += (after.proxyMs - before.proxyMs) / ROUNDS;
      figure.sqlMs += sessionMs(before, after) / ROUNDS;
    }
  }
  await pause(fleet.ctx, base);
  const rows = figures.map(({ name, ms, proxyMs, sqlMs, by }) => {
    const [p50, p95] = [quantile(ms, 0.5), quantile(ms, 0.95)].map((value) => value.toFixed(1));
    return [name, by, p50!, p95!, proxyMs.toFixed(1), sqlMs.toFixed(1)];
  });
  table(["read", "answered by", "p50, ms", "p95, ms", "proxy CPU, ms", "database CPU, ms"], rows);
  return figures.every(({ proxyMs, sqlMs, by }) => by === "replica" && proxyMs + sqlMs <= LIMIT_MS);
}

interface CpuTimes {
  proxyMs: number;
  /** By process id of the sessions that read replicas for the proxy. */
  sessions: Map<number, number>;
}

/** User and system CPU time so far, ms. */
async function cpuOf(proxyPid: number, sql: postgres.Sql): Promise<CpuTimes> {
  const found = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity where query ~ '^\\s*with (known|found) as' and pid <> pg_backend_pid()`;
  return {
    proxyMs: processCpuMs(proxyPid),
    sessions: new Map(found.map(({ pid }) => [pid, processCpuMs(pid)])),
  };
}

/** A session that has ended, or that the read began, does not count. */
function sessionMs(before: CpuTimes, after: CpuTimes): number {
  let ms = 0;
  for (const [pid, at] of after.sessions) ms += at - (before.sessions.get(pid) ?? at);
  return ms;
}

function processCpuMs(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const ns = threads.map((one) =>
      Number(readFileSync(`/proc/${pid}/task/${one}/schedstat`, "utf8").split(" ")[0]),
    );
    return ns.reduce((sum, one) => sum + one, 0) / 1e6;
  } catch {
    return 0;
  }
}

function asDisposable(sql: postgres.Sql) {
  return { sql, [Symbol.asyncDispose]: () => sql.end() };
}
