/** Runs recorded repairs: reads the records again and applies them as soon as possible. */
import { Notifier } from "../async";
import { asBasetideError, type ErrorCode } from "../errors";
import type { Running } from "../process";
import type { Claim, Repairs } from "./repairs";
import type { ReplicaPool } from "./replica-pool";
import { type ShowContext, showWrite } from "./show-write";

/** How often repairs are looked for while some wait, and otherwise, in case the notification of one is lost, ms. */
const POLL_MS = 2000;
const SELDOM_MS = 20_000;
/** A trigger of `repairs` notifies it. */
const CHANNEL = "basetide_repairs";
/**
 * Bases that are repaired at the same time. Databases on customers' own servers have a separate limit: however many of
 * them hang, no hosted database waits.
 */
const CONCURRENCY = 4;
/** How often a claim is renewed while it is being repaired, ms: a third of its duration. */
const RENEW_MS = 20_000;
/** Errors that a single record among many may cause. All other errors concern the base or its databases. */
const OF_ONE_RECORD: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "source_bad_answer",
  "source_rejected",
  "source_not_found",
  "invalid_request",
  "internal",
]);

/** Starts the loop. Many processes may run one: each repair is claimed by one of them. */
export function startRepairLoop(ctx: ShowContext, repairs: Repairs, pool: ReplicaPool): Running {
  const over = new AbortController();
  const notifiers = { hosted: new Notifier(), external: new Notifier() };
  const notifyAll = () => {
    notifiers.hosted.notify();
    notifiers.external.notify();
  };
  repairs.onRecorded = notifyAll;
  let isListening = false;
  const listen = () => {
    if (isListening) return;
    isListening = true;
    ctx.db.listen(CHANNEL, notifyAll, notifyAll).catch(() => {
      isListening = false;
    });
  };

  async function repair(claim: Claim): Promise<void> {
    // Repairs may wait long for the quota; another process must not repair the same records meanwhile.
    const unsettled = new Set(claim.records);
    const renewing = setInterval(() => {
      repairs.renew({ ...claim, records: [...unsettled] }).catch((error: unknown) => {
        ctx.log.debug({ baseId: claim.base.id, error }, "renewing a claim failed");
      });
    }, RENEW_MS);
    try {
      await settle(claim, (settled) => {
        for (const record of settled) unsettled.delete(record);
      });
    } finally {
      clearInterval(renewing);
    }
  }

  /** Repairs the claim's records, or reschedules them. Splits the claim in half if one record makes the others fail. */
  async function settle(claim: Claim, onSettled: (records: Claim["records"]) => void): Promise<void> {
    const { base, tableRef, records } = claim;
    const log = ctx.log.child({ baseId: base.id });
    const write = { tableRef, ids: records.map(({ id }) => id), answer: null };
    try {
      const showing = await pool.use(base, (handle) =>
        showWrite(ctx, base, handle, write, null, { signal: over.signal, isForClient: false }),
      );
      await repairs.done(claim);
      if (showing === "no_table")
        log.warn({ records: records.length }, "repair dropped: its table no longer exists");
      else log.info({ records: records.length }, "records repaired");
    } catch (error) {
      if (records.length > 1 && !over.signal.aborted && OF_ONE_RECORD.has(asBasetideError(error).code)) {
        const middle = Math.ceil(records.length / 2);
        await settle({ ...claim, records: records.slice(0, middle) }, onSettled);
        return settle({ ...claim, records: records.slice(middle) }, onSettled);
      }
      // Also when this process stops: another process need not wait for the claim to expire.
      if (!over.signal.aborted) log.warn({ error, records: records.length }, "repair rescheduled");
      await repairs.reschedule(claim);
    }
    onSettled(records);
  }

  async function run(isExternal: boolean, notifier: Notifier): Promise<void> {
    /** By base: the repairs of one may wait for its quota, and must not keep others from theirs. */
    const underWay = new Map<string, Promise<void>>();
    while (!over.signal.aborted) {
      let pauseMs = POLL_MS;
      try {
        // Only one of the two loops flushes.
        if (!isExternal) await repairs.flush();
        listen();
        const { count, nextInMs } = await repairs.pending(isExternal);
        ctx.writeMetrics.repairsPending(count, repairs.inMemory);
        if (nextInMs !== 0)
          pauseMs = Math.min(count + repairs.inMemory > 0 ? POLL_MS : SELDOM_MS, nextInMs ?? SELDOM_MS);
        while (nextInMs === 0 && underWay.size < CONCURRENCY && !over.signal.aborted) {
          const claim = await repairs.claim(isExternal, [...underWay.keys()]);
          if (!claim) break;
          const { id } = claim.base;
          const repairing = repair(claim)
            .catch((error: unknown) => ctx.log.debug({ baseId: id, error }, "ending a repair failed"))
            .finally(() => {
              underWay.delete(id);
              notifier.notify();
            });
          underWay.set(id, repairing);
        }
      } catch (error) {
        ctx.log.debug({ error }, "reading repairs failed");
        ctx.writeMetrics.repairsPending(0, repairs.inMemory);
      }
      await notifier.wait(pauseMs, over.signal).catch(() => {});
    }
    await Promise.all(underWay.values());
  }

  const running = Promise.all([run(false, notifiers.hosted), run(true, notifiers.external)]);
  return {
    async stop() {
      over.abort();
      await running;
    },
  };
}
