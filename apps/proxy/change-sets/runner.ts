/** Carries out the change sets that wait. Every proxy does: each set is held by one of them. */
import { Notifier, wait } from "../../../core/async";
import type { Context } from "../../../core/context";
import { decryptApiKey } from "../../../core/control/bases";
import {
  CHANGE_SET_CHANNEL,
  claimChangeSet,
  type HeldSet,
  releaseChangeSet,
  restChangeSet,
  type SetRest,
} from "../../../core/control/change-sets";
import { errorCodes, isBasetideError } from "../../../core/errors";
import type { Running } from "../../../core/process";
import { BaseCalls } from "./base-calls";
import { carryOut } from "./carry-out";

/** Sets that a process carries out at a time; one of each base, and a few of each account. */
const MOST_SETS = 200;
/** How often sets of proxies that have died are looked for, ms; others are announced. */
const POLL_MS = 10_000;

type RunnerContext = Pick<Context, "config" | "db" | "log" | "secrets">;

/** @param fetch this proxy, which the calls of a set go through */
export function startChangeSets(
  ctx: RunnerContext,
  fetch: (request: Request) => Response | Promise<Response>,
): Running {
  const { db, log } = ctx;
  const over = new AbortController();
  const wake = new Notifier();
  const running = new Set<Promise<void>>();
  let listening: Promise<{ unlisten(): Promise<void> }> | undefined;

  function listen(): void {
    const notify = () => wake.notify();
    listening ??= db.listen(CHANGE_SET_CHANNEL, notify, notify);
    listening.catch((error: unknown) => {
      listening = undefined;
      log.debug({ error }, "listening for change sets failed");
    });
  }

  async function run(set: HeldSet): Promise<void> {
    const rest = await attempt(set);
    // Another proxy need not wait until this one no longer holds it.
    if (over.signal.aborted) return releaseChangeSet(db, set).catch(() => {});
    if (!rest) return;
    await restChangeSet(db, set, rest).catch(() => {});
    wait(rest.ms, over.signal).then(
      () => wake.notify(),
      () => {},
    );
  }

  /** Returns how long the set must rest; undefined if it has ended, or is another proxy's. */
  async function attempt(set: HeldSet): Promise<SetRest | undefined> {
    try {
      const apiKey = decryptApiKey(ctx, { id: set.baseId, encryptedApiKey: set.encryptedApiKey });
      const callsOf = (stop: AbortSignal) =>
        new BaseCalls(fetch, ctx.config, { sourceBaseId: set.sourceBaseId, apiKey, stop });
      return await carryOut({ ctx, set, callsOf, stop: over.signal });
    } catch (error) {
      if (over.signal.aborted || isBasetideError(error, "lease_lost")) return undefined;
      log.warn({ error, baseId: set.baseId, changeSet: set.id }, "a change set was interrupted");
      return { ms: POLL_MS, why: isBasetideError(error) ? error.message : errorCodes.internal };
    }
  }

  async function loop(): Promise<void> {
    while (!over.signal.aborted) {
      listen();
      try {
        while (running.size < MOST_SETS && !over.signal.aborted) {
          const set = await claimChangeSet(db);
          if (!set) break;
          const work = run(set).finally(() => {
            running.delete(work);
            wake.notify();
          });
          running.add(work);
        }
      } catch (error) {
        log.debug({ error }, "looking for change sets failed");
      }
      await wake.wait(POLL_MS, over.signal).catch(() => {});
    }
  }

  const looping = loop();
  return {
    async stop() {
      over.abort();
      await looping;
      await Promise.all(running);
      await (await listening?.catch(() => undefined))?.unlisten().catch(() => {});
    },
  };
}
