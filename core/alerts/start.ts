/**
 * Runs alerts in a long-lived process, a worker or a console: evaluates states periodically, and delivers messages.
 *
 * Every such process does both. A lock decides which process evaluates (A4), and the queue decides which one
 * delivers, so any of them may die. Alerts are also sent when no worker runs, which is what turns bases red. A
 * schedule of pg-boss would serve neither purpose: its shortest interval is a minute, and only workers run it.
 */
import type { JobResult, PgBoss } from "pg-boss";
import { Counter } from "prom-client";
import { repeat } from "../async";
import type { Context } from "../context";
import { mailDelivery } from "../mail";
import { createMailPermits } from "../mail-permits";
import { type DeliveryContext, deliver, giveUp } from "./deliver";
import { evaluate } from "./evaluate";
import { byTarget, recordFailure, recordQueued, unqueuedMessages } from "./messages";
import { NotDelivered } from "./post";

const QUEUE = "alerts";
const GIVEN_UP_QUEUE = "alerts_given_up";
/** How often states are evaluated, over all processes, ms; and how often each looks for messages that another has queued. */
const EVERY_MS = 30_000;
/** Messages that a process delivers concurrently. */
const AT_ONCE = 20;
/** Longer than AT_ONCE attempts in sequence can take. */
const EXPIRE_SECONDS = 900;
/** After this time, another process takes the jobs of a process that died. */
const HEARTBEAT_SECONDS = 30;
/** 20 s, 40 s … 30 min: an hour and a quarter in total; after that, an alert is no longer news. */
const RETRIES = { limit: 8, firstSeconds: 20, longestSeconds: 30 * 60 };
const DELETE_AFTER_SECONDS = 3600;

interface AlertOptions {
  everyMs?: number;
  pollSeconds?: number;
  retries?: typeof RETRIES;
}

export interface RunningAlerts {
  /** Runs what is due now. Never fails. */
  look(): Promise<void>;
  /** Finishes running deliveries. */
  stop(): Promise<void>;
}

/** @param boss the process's queue, which is stopped after this */
export async function startAlerts(
  ctx: Context,
  boss: PgBoss,
  options: AlertOptions = {},
): Promise<RunningAlerts> {
  const { everyMs = EVERY_MS, pollSeconds = EVERY_MS / 1000, retries = RETRIES } = options;
  const delivery: DeliveryContext = {
    ...ctx,
    sendMail: mailDelivery(ctx.config),
    mailPermits: createMailPermits(ctx),
    counts: alertCounts(ctx),
  };
  await makeQueues(boss, retries);
  const polling = { pollingIntervalSeconds: pollSeconds, batchSize: AT_ONCE, burstWhenBatchFull: true };
  const worker = await boss.work(
    QUEUE,
    { ...polling, perJobResults: true },
    (jobs: { id: string; data: Job }[]) => deliverAll(delivery, jobs),
  );
  await boss.work<Job>(GIVEN_UP_QUEUE, polling, async (jobs) => {
    for (const { data } of jobs) await giveUp(delivery, data.messageId);
  });
  const looking = repeat(
    everyMs,
    () => lookOnce(ctx, boss, everyMs, worker),
    (error) => ctx.log.warn({ error }, "evaluating alert conditions failed"),
  );
  return {
    look: looking.now,
    async stop() {
      await looking.stop();
      await Promise.all([QUEUE, GIVEN_UP_QUEUE].map((name) => boss.offWork(name, { wait: true })));
    },
  };
}

interface Job {
  messageId: string;
}

/**
 * Queues the alerts of one evaluation, and wakes the worker that delivers them. If this process dies before, any process
 * queues them after the next evaluation.
 */
async function lookOnce(ctx: Context, boss: PgBoss, everyMs: number, worker: string): Promise<void> {
  const alerts = await evaluate(ctx, { everyMs });
  if (alerts) ctx.log.info({ alerts }, "alerts recorded");
  if (await queueMessages(ctx, boss)) boss.notifyWorker(worker);
}

/** Idempotent: the job has the message's own id. @returns whether there were any */
async function queueMessages({ db }: Pick<Context, "db">, boss: PgBoss): Promise<boolean> {
  const messages = await unqueuedMessages(db);
  if (messages.length === 0) return false;
  await boss.insert(
    QUEUE,
    messages.map(({ id, jobId }) => ({ id: jobId, data: { messageId: id } satisfies Job })),
  );
  await recordQueued(
    db,
    messages.map(({ id }) => id),
  );
  return true;
}

async function makeQueues(boss: PgBoss, retries: typeof RETRIES): Promise<void> {
  await boss.createQueue(GIVEN_UP_QUEUE, { deleteAfterSeconds: DELETE_AFTER_SECONDS });
  await boss.createQueue(QUEUE, {
    deadLetter: GIVEN_UP_QUEUE,
    retryLimit: retries.limit,
    retryDelay: retries.firstSeconds,
    retryBackoff: true,
    retryDelayMax: retries.longestSeconds,
    expireInSeconds: EXPIRE_SECONDS,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    deleteAfterSeconds: DELETE_AFTER_SECONDS,
  });
}

/**
 * Delivers the messages of one target in sequence: a recovery must not arrive before the failure. Each target has
 * its own sequence, so that a slow or unavailable receiver does not delay the others.
 */
async function deliverAll(
  delivery: DeliveryContext,
  jobs: { id: string; data: Job }[],
): Promise<JobResult[]> {
  const jobOf = new Map(jobs.map((job) => [job.data.messageId, job.id]));
  const targets = await byTarget(delivery.db, [...jobOf.keys()]);
  const done = new Map<string, JobResult>();
  await Promise.all(
    targets.map(async (ids) => {
      let failed: string | undefined;
      for (const messageId of ids) {
        const id = jobOf.get(messageId)!;
        // Later messages must not overtake the failed one, and would fail as well.
        if (failed === undefined) failed = await reasonOf(deliver(delivery, messageId));
        else await recordFailure(delivery.db, messageId, failed);
        done.set(messageId, failed === undefined ? { id, status: "completed" } : failure(id, failed));
      }
    }),
  );
  // Messages that no longer exist were deleted with their target.
  return jobs.map(({ id, data }) => done.get(data.messageId) ?? { id, status: "completed" });
}

/** Returns why it failed, or undefined if it did not. */
async function reasonOf(delivery: Promise<void>): Promise<string | undefined> {
  try {
    await delivery;
    return undefined;
  } catch (error) {
    return error instanceof NotDelivered ? error.message : "It could not be sent";
  }
}

/** A result for the queue, which stores the reason; it contains no address. */
function failure(id: string, reason: string): JobResult {
  return { id, status: "failed", output: { reason } };
}

function alertCounts({ metrics }: Pick<Context, "metrics">): DeliveryContext["counts"] {
  return new Counter({
    name: "basetide_alerts_total",
    help: "Attempts to deliver alerts to customers, by outcome",
    labelNames: ["kind", "channel", "outcome"],
    registers: [metrics],
  });
}
