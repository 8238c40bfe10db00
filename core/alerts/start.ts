/**
 * Runs alerts in a long-lived process, a worker or a console: evaluates states periodically, and delivers messages.
 *
 * Every such process does both. A lock decides which process evaluates (A4), and the rows of the outbox which one
 * delivers, so any of them may die. Alerts are also sent when no worker runs, which is what turns bases red.
 */
import { Counter } from "prom-client";
import { repeat } from "../async";
import type { Context } from "../context";
import { mailDelivery } from "../mail";
import { createMailPermits } from "../mail-permits";
import type { Running } from "../process";
import { type DeliveryContext, deliver } from "./deliver";
import { evaluate } from "./evaluate";
import { type Retries, takeMessage } from "./messages";

/** How often states are evaluated, over all processes, ms; and how often each looks for messages that are due. */
const EVERY_MS = 30_000;
/** Messages that a process delivers concurrently. */
const AT_ONCE = 20;
/** 20 s, 40 s … 30 min: an hour and a quarter in total; after that, an alert is no longer news. */
const RETRIES: Retries = { limit: 8, firstSeconds: 20, longestSeconds: 30 * 60 };

interface AlertOptions {
  everyMs?: number;
  pollMs?: number;
  retries?: Retries;
}

export interface RunningAlerts extends Running {
  /** Evaluates states if that is due, and begins to deliver what is. Never fails. */
  look(): Promise<void>;
  /** Finishes running deliveries. */
  stop(): Promise<void>;
}

export function startAlerts(ctx: Context, options: AlertOptions = {}): RunningAlerts {
  const { everyMs = EVERY_MS, pollMs = EVERY_MS, retries = RETRIES } = options;
  const { db, log } = ctx;
  const delivery: DeliveryContext = {
    ...ctx,
    sendMail: mailDelivery(ctx.config),
    mailPermits: createMailPermits(ctx),
    retries,
    counts: alertCounts(ctx),
  };
  const delivering = new Set<Promise<void>>();
  let isStopped = false;
  const looking = repeat(
    pollMs,
    async () => {
      const alerts = await evaluate(ctx, { everyMs });
      if (alerts) log.info({ alerts }, "alerts recorded");
      deliverDue();
    },
    (error) => log.warn({ error }, "evaluating alert conditions failed"),
  );

  /** Delivers one message after the other. Each makes room for one beside it, so that a slow receiver delays no other. */
  function deliverDue(): void {
    if (delivering.size >= AT_ONCE) return;
    const running = deliverEach()
      .catch((error: unknown) => log.warn({ error }, "delivering alerts failed"))
      .finally(() => void delivering.delete(running));
    delivering.add(running);
  }

  async function deliverEach(): Promise<void> {
    while (!isStopped) {
      const message = await takeMessage(db);
      if (!message) return;
      deliverDue();
      await deliver(delivery, message);
    }
  }

  return {
    look: looking.now,
    async stop() {
      isStopped = true;
      await looking.stop();
      await Promise.all(delivering);
    },
  };
}

function alertCounts({ metrics }: Pick<Context, "metrics">): DeliveryContext["counts"] {
  return new Counter({
    name: "basetide_alerts_total",
    help: "Attempts to deliver alerts to customers, by outcome",
    labelNames: ["kind", "channel", "outcome"],
    registers: [metrics],
  });
}
