/**
 * Prints what permits give and cost on a virtual clock: rates of sync, waits of clients, and calls of the control plane a
 * request. The real SQL answers; each figure is the average of four simulations of two minutes. Takes about two minutes.
 *
 * Run: `bun run bench permits` (DATABASE_URL, or an embedded server).
 */
import postgres from "postgres";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";
import { playTraffic, type Traffic } from "../support/permit-traffic";
import { startTestServer } from "../support/server";

const SEEDS = [13, 26, 39, 52];

const cases: Record<string, Traffic> = {
  "Turbo alone": { share: 5 },
  "Turbo alone, 80 ± 20 ms": { share: 5, jitterMs: 20 },
  "Turbo alone, 200 ± 60 ms": { share: 5, jitterMs: 60, travelMs: 200 },
  "3/s alone": { share: 3 },
  "3/s alone, 80 ± 20 ms": { share: 3, jitterMs: 20 },
  "3/s alone, 200 ± 60 ms": { share: 3, jitterMs: 60, travelMs: 200 },
  "3/s and a client of 1/s": { share: 3, proxies: 1, rate: 1 },
  "Turbo and a client of 1/s": { share: 5, proxies: 1, rate: 1 },
  "Turbo and a client of 3/s": { share: 5, proxies: 1, rate: 3 },
  "Turbo and three proxies, 0.7/s each": { share: 5, proxies: 3, rate: 0.7 },
  "no sync, one proxy, 4/s": { share: 0, proxies: 1, rate: 4 },
  "no sync, four proxies, 1/s each": { share: 0, proxies: 4, rate: 1 },
  "Turbo, one table, 100 pages of 20 to 300 ms": {
    share: 5,
    tables: 1,
    latencyMs: [20, 300],
    pages: 100,
    forMs: 40_000,
  },
};

/** @returns whether no second had a sixth request */
export async function run(): Promise<boolean> {
  const server = await startTestServer();
  const database = `permits_bench_${process.pid}`;
  const admin = postgres(server.url, { max: 1, onnotice: () => {} });
  await admin.unsafe(`create database ${database}`);
  const url = Object.assign(new URL(server.url), { pathname: `/${database}` }).href;
  const db = postgres(url, { max: 4, onnotice: () => {} });
  let most = 0;
  try {
    await migrateControl(url, createLogger("error", "bench"));
    console.log(
      `${"".padEnd(46)}${["most", "sync/s", "clients/s", "p50 ms", "p95 ms", "calls", "ended s"].map((name) => name.padStart(10)).join("")}`,
    );
    for (const [name, traffic] of Object.entries(cases)) {
      const runs: Awaited<ReturnType<typeof playTraffic>>[] = [];
      for (const seed of SEEDS) runs.push(await playTraffic(db, traffic, seed));
      const mean = (of: (run: (typeof runs)[0]) => number, digits: number) =>
        (runs.reduce((sum, run) => sum + of(run), 0) / runs.length).toFixed(digits);
      const mostHere = Math.max(...runs.map(({ mostInASecond }) => mostInASecond));
      most = Math.max(most, mostHere);
      const figures = [
        String(mostHere),
        mean((run) => run.sync, 2),
        mean((run) => run.clients, 2),
        mean((run) => run.p50, 0),
        mean((run) => run.p95, 0),
        mean((run) => run.trades, 3),
        traffic.pages ? mean((run) => run.endedAt / 1000, 2) : "",
      ];
      console.log(name.padEnd(46) + figures.map((figure) => figure.padStart(10)).join(""));
    }
  } finally {
    await db.end();
    await admin.unsafe(`drop database if exists ${database} with (force)`);
    await admin.end();
    await server.stop();
  }
  return most <= 5;
}
