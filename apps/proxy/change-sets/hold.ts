/** Holds a change set while it is carried out, and lets go of it in time for another proxy to take it. */
import { linkedAbort } from "../../../core/async";
import type { Context } from "../../../core/context";
import { LET_GO_MS, RENEW_EVERY_MS, renewChangeSet, type SetHold } from "../../../core/control/change-sets";

export interface Hold extends Disposable {
  /** Aborted when another proxy may have the set soon, or with the signal that `holdSet` got. */
  signal: AbortSignal;
  isLost: boolean;
  /** @param problem why the set cannot continue at the moment; the same as before unless given */
  renew(problem?: string): Promise<void>;
}

/** @param problem why the set cannot continue, as far as is known */
export function holdSet(
  { db, log }: Pick<Context, "db" | "log">,
  set: SetHold,
  stop: AbortSignal,
  problem = "",
): Hold {
  const over = linkedAbort(stop);
  const letGo = () => {
    hold.isLost = true;
    over.abort();
  };
  let lettingGo = setTimeout(letGo, LET_GO_MS);
  const renewing = setInterval(() => {
    hold.renew().catch((error: unknown) => log.debug({ error, changeSet: set.id }, "renewing a hold failed"));
  }, RENEW_EVERY_MS);
  const hold: Hold = {
    signal: over.signal,
    isLost: false,
    async renew(why = problem) {
      problem = why;
      const state = await renewChangeSet(db, set, problem);
      clearTimeout(lettingGo);
      if (state === undefined) return letGo();
      lettingGo = setTimeout(letGo, LET_GO_MS);
    },
    [Symbol.dispose]() {
      clearInterval(renewing);
      clearTimeout(lettingGo);
      over[Symbol.dispose]();
    },
  };
  return hold;
}
