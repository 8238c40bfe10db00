/**
 * Limits by the address that is tried, beside the library's, which are by the client's: so many guesses at one
 * account from all the world, so many mails to one person. The same for an address that has no account (A1).
 */
import { createHash } from "node:crypto";
import type { Db } from "../../../core/context";
import type { AuthAnswer } from "./auth";

/**
 * - `sign-in`: in vain; one that succeeds begins anew. Its owner can still get in with a new password, by mail.
 * - `mail`: whatever has us send one there.
 */
const LIMITS = {
  "sign-in": { most: 30, window: "15 minutes", isForgiven: true },
  mail: { most: 10, window: "1 hour", isForgiven: false },
} as const;

export function createAttempts(db: Db) {
  return {
    /** Makes the attempt, or says that there were too many. */
    async limit(
      kind: keyof typeof LIMITS,
      email: string,
      call: () => Promise<AuthAnswer>,
    ): Promise<AuthAnswer> {
      const { most, window, isForgiven } = LIMITS[kind];
      const key = `${kind} ${createHash("sha256").update(email.trim().toLowerCase()).digest("base64url")}`;
      const [row] = await db<{ wait_ms: number }[]>`
        select attempt(${key}, ${most}, ${window}::interval) as wait_ms`;
      if (row!.wait_ms > 0) return tooMany(Math.ceil(row!.wait_ms / 1000));
      const answer = await call();
      if (answer.ok && isForgiven) await db`delete from attempts where key = ${key}`;
      return answer;
    },
  };
}

export function tooMany(seconds: number): AuthAnswer {
  const message = `Too many attempts. Try again in ${seconds} seconds.`;
  return { ok: false, reason: "too_many", message, retryAfterSeconds: seconds };
}
