/**
 * Alerts in a process that lasts, a worker or a console: looks at states now and then, and delivers.
 *
 * Every such process does both. A lock decides who looks (A4), the queue who delivers, so any of them may die, and
 * alerts still go out while no worker is there: which is what turns bases red. A schedule of the queue's own would do
 * for neither: it knows no less than a minute, and only workers run it.
 */
import type { JobResult, PgBoss } from "pg-boss";
import { Counter } from "prom-client";
import type { Context } from "../context";
import { mailDelivery } from "../mail";
import { createMailPermits } from "../mail-permits";
import { type DeliveryContext, deliver, giveUp } from "./deliver";
import { evaluate } from "./evaluate";
import { byTarget, recordFailure, recordQueued, unqueuedMessages } from "./messages";
import { NotDelivered } from "./post";

const QUEUE = "alerts";
const GIVEN_UP_QUEUE = "alerts_given_up";
/** How often states are looked at, over all processes, ms. */
const EVERY_MS = 15_000;
const POLL_SECONDS = 3;
/** Messages that a process delivers at once. */
const AT_ONCE = 20;
/** Longer than any AT_ONCE attempts one after the other take. */
const EXPIRE_SECONDS = 900;
/** What a process that died had in hand is another's after so long. */
const HEARTBEAT_SECONDS = 30;
/** 20 s, 40 s … 30 min: an hour and a quarter in all, and then it is news no more. */
const RETRIES = { limit: 8, firstSeconds: 20, longestSeconds: 30 * 60 };
const DELETE_AFTER_SECONDS = 3600;

export interface AlertOptions {
  everyMs?: number;
  pollSeconds?: number;
  retries?: typeof RETRIES;
}

export interface RunningAlerts {
  /** Does what is due now. Never fails. */
  look(): Promise<void>;
  /** Ends what is in hand. */
  stop(): Promise<void>;
}

/** @param boss the process's queue, which outlives this */
export async function startAlerts(
  ctx: Context,
  boss: PgBoss,
  options: AlertOptions = {},
): Promise<RunningAlerts> {
  const { everyMs = EVERY_MS, pollSeconds = POLL_SECONDS, retries = RETRIES } = options;
  const delivery: DeliveryContext = {
    ...ctx,
    sendMail: mailDelivery(ctx.config),
    mailPermits: createMailPermits(ctx),
    counts: alertCounts(ctx),
  };
  await makeQueues(boss, retries);
  const polling = { pollingIntervalSeconds: pollSeconds, batchSize: AT_ONCE };
  await boss.work(QUEUE, { ...polling, perJobResults: true }, (jobs: { id: string; data: Job }[]) =>
    deliverAll(delivery, jobs),
  );
  await boss.work<Job>(GIVEN_UP_QUEUE, polling, async (jobs) => {
    for (const { data } of jobs) await giveUp(delivery, data.messageId);
  });
  let looking: Promise<void> | undefined;
  const look = () => {
    looking ??= lookOnce(ctx, boss, everyMs).finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = setInterval(() => void look(), everyMs);
  return {
    look,
    async stop() {
      clearInterval(timer);
      await looking;
      await Promise.all([QUEUE, GIVEN_UP_QUEUE].map((name) => boss.offWork(name, { wait: true })));
    },
  };
}

interface Job {
  messageId: string;
}

/** What a look has found is queued here, or, if this process dies before, after anybody's next look. */
async function lookOnce(ctx: Context, boss: PgBoss, everyMs: number): Promise<void> {
  try {
    const alerts = await evaluate(ctx, { everyMs });
    if (alerts) ctx.log.info({ alerts }, "alerts noted");
    await queueMessages(ctx, boss);
  } catch (error) {
    ctx.log.warn({ error }, "states not looked at for alerts");
  }
}

/** Queueing a message twice is queueing it once: its job has the message's own id. */
async function queueMessages({ db }: Pick<Context, "db">, boss: PgBoss): Promise<void> {
  const messages = await unqueuedMessages(db);
  if (messages.length === 0) return;
  await boss.insert(
    QUEUE,
    messages.map(({ id, jobId }) => ({ id: jobId, data: { messageId: id } satisfies Job })),
  );
  await recordQueued(
    db,
    messages.map(({ id }) => id),
  );
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
 * Those of one target one after the other: recovered is not to arrive before red. Each is ended by itself, so that a
 * receiver that is slow or away keeps none of the others.
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
        // What comes after it is not to overtake it, and would fare no better.
        if (failed === undefined) failed = await reasonOf(deliver(delivery, messageId));
        else await recordFailure(delivery.db, messageId, failed);
        done.set(messageId, failed === undefined ? { id, status: "completed" } : failure(id, failed));
      }
    }),
  );
  // Those that are not there any more have gone with their target.
  return jobs.map(({ id, data }) => done.get(data.messageId) ?? { id, status: "completed" });
}

/** Why it failed; undefined: it did not. */
async function reasonOf(delivery: Promise<void>): Promise<string | undefined> {
  try {
    await delivery;
    return undefined;
  } catch (error) {
    return error instanceof NotDelivered ? error.message : "It could not be sent";
  }
}

/** For the queue: it keeps the words of a failure, which hold no address. */
function failure(id: string, reason: string): JobResult {
  return { id, status: "failed", output: { reason } };
}

function alertCounts({ metrics }: Pick<Context, "metrics">): DeliveryContext["counts"] {
  return new Counter({
    name: "basetide_alerts_total",
    help: "Alerts to customers by what became of an attempt to deliver them",
    labelNames: ["kind", "channel", "outcome"],
    registers: [metrics],
  });
}
