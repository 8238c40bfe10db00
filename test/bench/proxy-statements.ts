/**
 * What writes through the proxy cost Postgres: those of many connections on all bases, as fast as the rate limits allow, those
 * that wait for the rate limit, and those that are refused.
 */
import postgres from "postgres";
import type { Fleet } from "../support/fleet";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { LIMITS } from "../support/quota-limits";
import type { SandboxProcess } from "../support/sandbox-process";
import type { TestServer } from "../support/server";
import type { Figure } from "./proxy";
import { type Bench, send, type Way, waysOf } from "./proxy-requests";
import { StatementCounts } from "./statements";

const CONNECTIONS = 64;
/** Before it is measured: permits are distributed. */
const SETTLE_MS = 3000;
const STREAM_MS = 8000;
const ROUNDS = 2;
/** The source's requests a second of a base. */
const QUOTA = 5;
const WAITING = 200;
const WAIT_MS = 4000;
/** Longer than any request waits. */
const REFUSED_MS = 600_000;

/** The proxies that are compared: this tree's, and the other one. */
const proxiesOf = (bench: Bench): Way[] => waysOf(bench).slice(2);

/** Writes of 64 connections to all bases in turn. */
export async function writeStream(bench: Bench, server: TestServer): Promise<[Figure, number][]> {
  await using admin = await adminOf(server);
  const counts = await StatementCounts.on(admin.sql);
  const figures = new Map<Way, { share: number; statements: number }[]>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of proxiesOf(bench)) {
      const one = await streamOnce(bench, way, counts, admin.pid);
      figures.set(way, [...(figures.get(way) ?? []), one]);
    }
  }
  const average = (of: "share" | "statements") => {
    const all = figures.get("proxied")!.map((one) => one[of]);
    return all.reduce((sum, value) => sum + value, 0) / all.length;
  };
  return [
    ["writes on all bases, share of the quota", average("share")],
    ["statements of a write", average("statements")],
  ];
}

async function streamOnce(bench: Bench, way: Way, counts: StatementCounts, server: number) {
  let isOver = false;
  let done = 0;
  let next = 0;
  const connection = async () => {
    while (!isOver) {
      await send(bench, way, "write", next++ % bench.bases.length, next);
      done++;
    }
  };
  const all = Promise.all(Array.from({ length: CONNECTIONS }, connection));
  await Bun.sleep(SETTLE_MS);
  const pid = way === "against" ? bench.against!.pid : bench.pids.proxied;
  const cpu = () => [cpuSeconds(pid), cpuSeconds(server)] as const;
  const before = { done, cpu: cpu(), at: performance.now() };
  await counts.reset();
  await Bun.sleep(STREAM_MS);
  const writes = done - before.done;
  const seconds = (performance.now() - before.at) / 1000;
  const after = cpu();
  const statements = ((await counts.print(`writes, ${way}`)) * seconds) / writes;
  isOver = true;
  await all;
  const [proxyUs, postgresUs] = after.map((value, index) => (1e6 * (value - before.cpu[index]!)) / writes);
  const share = writes / seconds / (QUOTA * bench.bases.length);
  console.log(
    `${way}: ${(writes / seconds).toFixed(0)} writes/s, ${share.toFixed(3)} of the quota, ${statements.toFixed(2)} statements each; CPU of each: proxy ${proxyUs!.toFixed(0)} µs, Postgres ${postgresUs!.toFixed(0)} µs`,
  );
  return { share, statements };
}

/** Writes to a base that the source has asked to pause: shorter than a request waits, and longer. */
export async function refusedWrites(
  bench: Bench,
  server: TestServer,
  { ctx }: Fleet<SandboxProcess>,
): Promise<[Figure, number][]> {
  await using admin = await adminOf(server);
  const counts = await StatementCounts.on(admin.sql);
  const figures: [Figure, number][] = [];
  for (const way of proxiesOf(bench)) {
    const bases = way === "against" ? bench.against!.bases : bench.bases;
    const measure = async (name: Figure, index: number, pauseMs: number) => {
      const { id, key, path, record } = bases[index]!;
      // It holds permits.
      await send(bench, way, "write", index, 0);
      await ctx.db`select quota_block(${`airtable:${id}`}, ${LIMITS}::source_limits, ${pauseMs}, '', 5)`;
      const url = `${way === "against" ? bench.against!.url : bench.proxied}${path}/${record}`;
      const perSecond = async (work: () => Promise<unknown>) => {
        await counts.reset();
        await Promise.all([Bun.sleep(WAIT_MS), work()]);
        return counts.print(`${name}, ${way}`);
      };
      const idle = await perSecond(async () => {});
      const over = AbortSignal.timeout(WAIT_MS);
      const write = () =>
        fetch(url, {
          method: "PATCH",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ fields: { Name: "waits" } }),
          signal: over,
        }).then((answer) => answer.text());
      const all = () => Promise.allSettled(Array.from({ length: WAITING }, write));
      const statements = (((await perSecond(all)) - idle) * WAIT_MS) / 1000 / WAITING;
      console.log(`${name}, ${way}: ${statements.toFixed(2)}`);
      if (way === "proxied") figures.push([name, statements]);
    };
    await measure("statements of a write that waits", 0, 30_000);
    await measure("statements of a refused write", 1, REFUSED_MS);
  }
  return figures;
}

/** @returns a superuser's connection, and the process id of the server */
async function adminOf({ url }: TestServer) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return { sql, pid: parentOf(row!.pid), [Symbol.asyncDispose]: () => sql.end() };
}
