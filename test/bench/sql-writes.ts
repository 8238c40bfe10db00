/**
 * Measures SQL writes: 1,000 rows in a transaction against the source's limit of five calls a second, and against one row
 * a call; and a single row against the same write over HTTP through the proxy, in turns. Then the same base with queued
 * writes: COMMIT itself, and the time from COMMIT until SQL shows the row.
 *
 * Proxy and source are separate processes. Run: `bun run bench sql-writes`
 */
import postgres from "postgres";
import { createSqlUserOf, pause, updateSettings } from "../../core/control/bases";
import { getDatabase, showSqlUserCredentials } from "../../core/control/placement";
import { startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { putFirst } from "../support/priority";
import { quantile } from "../support/quantile";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { table } from "./print";
import { startProxyProcess } from "./proxy";

const ROWS = 1000;
/** Rows that are written one a call: the rate is the same for more. */
const SINGLES = 50;
const PAIRS = 150;
/** After such a pause, a call does not wait for the rate limit. */
const PERMIT_MS = 250;
const SOURCE_MS = { minMs: 80, maxMs: 80 };
/** Of what the limit allows. */
const MOST_OF_LIMIT = 1.05;
const LEAST_FASTER = 9;
/** Over the write by HTTP, ms. */
const MOST_ADDED = { p50: 2, p99: 6 };
const QUEUED = 40;
const SHOWN_MS = 120_000;
/** From COMMIT until SQL shows a queued row, while nothing else waits, ms. */
const MOST_QUEUED_MS = 1500;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  const env = { WRITE_PORT: String(await freePort()) };
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url, env }));
  putFirst(source.pid);
  const upstreams = `api.airtable.com=${source.url},content.airtable.com=${source.url}`;
  const proxy = await startProxyProcess(releases, fleet, upstreams, env);
  const sourceBaseId = await source.generate({ records: 100, tables: 1, seed: 1 });
  const base = await fleet.connect(sourceBaseId, {});
  await fleet.synced(base.id);
  const ctx = { ...fleet.ctx, actor: { kind: "system", name: "bench" } as const };
  const on = await updateSettings(ctx, base, { sqlWrites: true });
  const user = await createSqlUserOf(ctx, on, "bench", { tables: ["projects"] });
  const { url } = await showSqlUserCredentials(ctx, await getDatabase(ctx.db, base.database.id), user);
  // Sync takes nothing from the clients' calls.
  await pause(fleet.ctx, on);
  await source.settings({ latency: { before: SOURCE_MS } });
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  releases.defer(() => sql.end());
  const timed = async (work: () => Promise<unknown>) => {
    const from = performance.now();
    await work();
    return performance.now() - from;
  };

  let statement = 0;
  const many = await timed(() =>
    sql.begin(async (tx) => {
      statement = await timed(
        () =>
          tx`insert into write.projects (name) select 'Row ' || n from generate_series(1, ${ROWS}::int) as n`,
      );
    }),
  );
  const single = await timed(async () => {
    for (let nth = 0; nth < SINGLES; nth++)
      await sql`insert into write.projects (name) values (${`One ${nth}`})`;
  });
  const limit = ((ROWS / 10) * 1000) / 5;
  const faster = ((single / SINGLES) * ROWS) / many;

  const address = `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${sourceBaseId}/Projects`;
  const headers = { authorization: `Bearer ${source.key}`, "content-type": "application/json" };
  const [bySql, byHttp]: [number[], number[]] = [[], []];
  for (let nth = 0; nth < PAIRS; nth++) {
    const name = `Pair ${nth}`;
    await Bun.sleep(PERMIT_MS);
    bySql.push(await timed(() => sql`insert into write.projects (name) values (${name})`));
    await Bun.sleep(PERMIT_MS);
    const body = JSON.stringify({ records: [{ fields: { Name: name } }] });
    byHttp.push(
      await timed(async () => {
        const response = await fetch(address, { method: "POST", headers, body });
        await response.text();
        if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
      }),
    );
  }
  const added = (share: number) => quantile(bySql, share) - quantile(byHttp, share);
  await updateSettings(ctx, on, { sqlWritesQueued: true });
  const shown = (count: number) =>
    until(async () => (await sql`select from projects where name like 'Queued %'`).length === count, {
      what: "SQL shows the queued rows",
      timeoutMs: SHOWN_MS,
      intervalMs: 5,
    });
  const [commits, delays]: [number[], number[]] = [[], []];
  for (let nth = 1; nth <= QUEUED; nth++) {
    // The outbox is at rest.
    await Bun.sleep(4 * PERMIT_MS);
    commits.push(await timed(() => sql`insert into write.projects (name) values (${`Queued ${nth}`})`));
    delays.push(await timed(() => shown(nth)));
  }
  const oneByOne = await timed(async () => {
    for (let nth = 1; nth <= QUEUED; nth++)
      await sql`insert into write.projects (name) values (${`Queued one ${nth}`})`;
    await shown(2 * QUEUED);
  });
  const queued = await timed(async () => {
    await sql`insert into write.projects (name) select 'Queued row ' || n from generate_series(1, ${ROWS}::int) as n`;
    await shown(2 * QUEUED + ROWS);
  });
  table(
    ["figure", "measured", "at most, or at least"],
    [
      [`${ROWS} rows, of the time that the limit allows`, (many / limit).toFixed(3), MOST_OF_LIMIT],
      ["of that, the statement before COMMIT, s", (statement / 1000).toFixed(2), ""],
      ["times faster than one row a call", faster.toFixed(1), LEAST_FASTER],
      ["a row over HTTP, p50, ms", quantile(byHttp, 0.5).toFixed(1), ""],
      ["the same, p99, ms", quantile(byHttp, 0.99).toFixed(1), ""],
      ["a row by SQL beyond that, p50, ms", added(0.5).toFixed(2), MOST_ADDED.p50],
      ["a row by SQL beyond that, p99, ms", added(0.99).toFixed(2), MOST_ADDED.p99],
      [`queued: ${ROWS} rows until SQL shows them, of that time`, (queued / limit).toFixed(3), ""],
      ["queued: COMMIT, p50, ms", quantile(commits, 0.5).toFixed(1), ""],
      ["queued: from COMMIT until SQL shows the row, p50, ms", quantile(delays, 0.5).toFixed(0), ""],
      ["the same, p99, ms", quantile(delays, 0.99).toFixed(0), MOST_QUEUED_MS],
      ["queued: transactions of one row, a second", ((QUEUED * 1000) / oneByOne).toFixed(1), ""],
    ],
  );
  const isWithin =
    many <= limit * MOST_OF_LIMIT &&
    faster >= LEAST_FASTER &&
    added(0.5) <= MOST_ADDED.p50 &&
    added(0.99) <= MOST_ADDED.p99 &&
    quantile(delays, 0.99) <= MOST_QUEUED_MS;
  console.log(isWithin ? "\nmet" : "\nNOT MET");
  return isWithin;
}
