/** Mends what was noted: reads the records again and applies them, as soon as that is possible. */
import type { Running } from "../start";
import type { Claim, Repairs } from "./repairs";
import type { ReplicaPool } from "./replica-pool";
import { type ShowContext, showWrite } from "./show-write";

/** How often others' notes are looked for, ms. */
const POLL_MS = 2000;
/** Bases that are mended at the same time: one whose replica hangs does not hold up the others. */
const LANES = 4;
/** How often a claim that is being mended is claimed anew, ms: a third of what it lasts. */
const RENEW_MS = 20_000;

/** Starts the loop. Many processes may run one: each repair is claimed by one of them. */
export function startRepairLoop(ctx: ShowContext, repairs: Repairs, pool: ReplicaPool): Running {
  const over = new AbortController();
  let alarm = Promise.withResolvers<void>();
  repairs.onNote = () => alarm.resolve();

  async function mend(claim: Claim): Promise<void> {
    const { base, tableRef, records } = claim;
    const log = ctx.log.child({ baseId: base.id });
    const write = { tableRef, ids: records.map(({ id }) => id), answer: null };
    // The quota may make it take long; another process must not ask for the same meanwhile.
    const renewing = setInterval(() => {
      repairs.renew(claim).catch((error: unknown) => log.debug({ error }, "claim not renewed"));
    }, RENEW_MS);
    try {
      const showing = await pool.use(base, (handle) =>
        showWrite(ctx, base, handle, write, null, { signal: over.signal, isForClient: false }),
      );
      await repairs.done(claim);
      if (showing === "no_table") log.warn({ records: records.length }, "repair of a table that is gone");
      else log.info({ records: records.length }, "records repaired");
    } catch (error) {
      // Also when it is this process that ends: another one need not wait for the claim to run out.
      if (!over.signal.aborted) log.warn({ error, records: records.length }, "repair put off");
      await repairs.putOff(claim);
    } finally {
      clearInterval(renewing);
    }
  }

  async function mendAll(): Promise<void> {
    while (!over.signal.aborted) {
      const claim = await repairs.claim();
      if (!claim) return;
      await mend(claim);
    }
  }

  async function run(): Promise<void> {
    while (!over.signal.aborted) {
      let pauseMs = POLL_MS;
      alarm = Promise.withResolvers();
      try {
        if (repairs.inMemory > 0) await repairs.flush();
        const { count, nextInMs } = await repairs.pending();
        ctx.writeMetrics.repairsPending(count, repairs.inMemory);
        if (nextInMs === 0) await Promise.all(Array.from({ length: LANES }, mendAll));
        else pauseMs = Math.min(POLL_MS, nextInMs ?? POLL_MS);
      } catch (error) {
        ctx.log.debug({ error }, "repairs not looked at");
        ctx.writeMetrics.repairsPending(0, repairs.inMemory);
      }
      const timer = setTimeout(() => alarm.resolve(), pauseMs);
      await alarm.promise;
      clearTimeout(timer);
    }
  }

  const running = run();
  return {
    async stop() {
      over.abort();
      alarm.resolve();
      await running;
    },
  };
}
