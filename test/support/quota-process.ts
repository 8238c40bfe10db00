/**
 * One process that uses the rate limiter, for the bench: `bun test/support/quota-process.ts <job in JSON>`.
 *
 * Prints one JSON array of the grants, with times on the machine's clock (ms since 1970).
 */
import postgres from "postgres";
import { Registry } from "prom-client";
import { createRateLimiter } from "../../core/limiter";
import { createLogger } from "../../core/log";

export interface QuotaJob {
  url: string;
  key: string;
  /** When all processes begin and end, ms since 1970. */
  from: number;
  until: number;
  /** Tables that are swept at once; 0 for none. */
  tables: number;
  share: number;
  /** The number of clients that send requests repeatedly, and their average period. */
  clients: number;
  clientPeriodMs: number;
  /** Variation of the period: 0 is regular, 1 is random. */
  clientJitter: number;
}

export interface QuotaGrant {
  kind: "sync" | "client";
  askedAt: number;
  at: number;
}

const job = JSON.parse(process.argv[2]!) as QuotaJob;
const db = postgres(job.url, { max: 4, onnotice: () => {} });
const limiter = createRateLimiter({ db, log: createLogger("warn", "bench"), metrics: new Registry() });
const end = AbortSignal.timeout(job.until - now());
const grants: QuotaGrant[] = [];

function now(): number {
  return performance.timeOrigin + performance.now();
}

async function take(kind: QuotaGrant["kind"]): Promise<void> {
  const askedAt = now();
  try {
    if (kind === "sync") await limiter.acquireSync(job.key, job.share, end);
    else await limiter.acquireClient(job.key, { deadlineMs: 5000, signal: end });
    grants.push({ kind, askedAt, at: now() });
  } catch {
    // Rejected, or the end of the run.
  }
}

async function sweepTable(): Promise<void> {
  while (!end.aborted) {
    await take("sync");
    await Bun.sleep(50 + Math.random() * 200);
  }
}

async function askAgainAndAgain(): Promise<void> {
  while (!end.aborted) {
    const shift = (Math.random() * 2 - 1) * job.clientJitter;
    await Bun.sleep(job.clientPeriodMs * (1 + shift));
    take("client");
  }
}

await db`select 1`;
await Bun.sleep(job.from - now());
await Promise.race([
  Promise.all([
    ...Array.from({ length: job.tables }, sweepTable),
    ...Array.from({ length: job.clients }, askAgainAndAgain),
  ]),
  new Promise((resolve) => end.addEventListener("abort", resolve)),
]);
console.log(JSON.stringify(grants));
process.exit(0);
