/**
 * Counts attempts in windows of time, shared by all processes of the service.
 *
 * A counter's row is named by a keyed hash of 20 bits, so the table is bounded however many addresses are tried, and an
 * attacker cannot compute which names share a counter. It stores no e-mail address and no client's address.
 */
import { createHmac } from "node:crypto";
import type { Context } from "./context";
import { derivedKeys } from "./secrets";

const BUCKET_DIGITS = 5;

export interface AttemptLimit {
  /** Names the kind of attempt: counters of different kinds are independent. */
  kind: string;
  most: number;
  /** A Postgres interval. */
  window: string;
}

export interface AttemptCounter {
  /** Counts one attempt of `who`. @returns 0, or the ms to wait if the window's maximum is exceeded */
  take(limit: AttemptLimit, who: string): Promise<number>;
  clear(limit: AttemptLimit, who: string): Promise<void>;
}

export function createAttemptCounter({ config, db }: Pick<Context, "config" | "db">): AttemptCounter {
  const [secret] = derivedKeys(config, "attempts");
  const keyOf = ({ kind }: AttemptLimit, who: string) => {
    const digest = createHmac("sha256", secret!).update(`${kind}\0${who}`).digest("hex");
    return `${kind} ${digest.slice(0, BUCKET_DIGITS)}`;
  };
  return {
    async take(limit, who) {
      const [row] = await db<{ waitMs: number }[]>`
        select attempt(${keyOf(limit, who)}, ${limit.most}, ${limit.window}::interval) as "waitMs"`;
      return row!.waitMs;
    },
    async clear(limit, who) {
      await db`delete from attempts where key = ${keyOf(limit, who)}`;
    },
  };
}
