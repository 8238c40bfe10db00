/**
 * Limits on sign-in attempts.
 *
 * L1. A client over its own limit is rejected before anything is counted for an account.
 * L2. A browser that has signed in before has its own counter: attempts of others never block it, from any network. A
 *     new password by mail clears the account's counter. An attacker with any number of addresses can therefore only
 *     slow down sign-ins from unknown browsers.
 * L3. An address without an account is counted in the same way as one with an account.
 * L4. A client over its limit is refused from this process's memory until its window ends. The control plane alone
 *     counts what is allowed, for all consoles; nothing clears a client's counter, so a refusal cannot become outdated.
 */
import type { AttemptCounter, AttemptLimit } from "../../../core/attempts";
import { LruMap } from "../../../core/lru-map";
import type { AuthFailure } from "./auth";

/** Attempts of one client network, over all consoles. */
const CLIENT_LIMITS = {
  "sign-in": { kind: "client-sign-in", most: 10, window: "1 minute" },
  "sign-in-code": { kind: "client-sign-in-code", most: 10, window: "1 minute" },
  "sign-in-with": { kind: "client-sign-in-with", most: 20, window: "1 minute" },
  "sign-up": { kind: "client-sign-up", most: 10, window: "1 minute" },
  "change-password": { kind: "client-change-password", most: 10, window: "1 minute" },
  "reset-password": { kind: "client-reset-password", most: 10, window: "1 minute" },
  "verify-email": { kind: "client-verify-email", most: 20, window: "1 minute" },
  "request-reset": { kind: "client-request-reset", most: 5, window: "10 minutes" },
} as const satisfies Record<string, AttemptLimit>;

/** Failed sign-ins to one account from unknown browsers. */
const ACCOUNT_LIMIT: AttemptLimit = { kind: "account-sign-in", most: 30, window: "15 minutes" };
/** Failed sign-ins of one known browser. */
const DEVICE_LIMIT: AttemptLimit = { kind: "device-sign-in", most: 10, window: "15 minutes" };
/** Wrong guesses of the current password within one user's sessions. */
const USER_LIMIT: AttemptLimit = { kind: "user-change-password", most: 20, window: "15 minutes" };

const CROWDED_SECONDS = 5;
/** Clients over a limit that a process remembers; others are refused by the control plane. */
const MAX_REMEMBERED = 20_000;

/** Attempts that are limited by client network. */
export type LimitedAttempt = keyof typeof CLIENT_LIMITS;
export type ClientAttempt = Exclude<LimitedAttempt, "sign-in">;

/** Each limit returns why the attempt may not be made, or null if it may. */
export function createAttemptLimits(counter: AttemptCounter) {
  const take = async (limit: AttemptLimit, who: string) => {
    const waitMs = await counter.take(limit, who);
    return waitMs > 0 ? tooMany(Math.ceil(waitMs / 1000)) : null;
  };
  /** When each client over a limit may try again. */
  const overLimit = new LruMap<string, number>(MAX_REMEMBERED);
  const secondsLeft = (attempt: LimitedAttempt, network: string) => {
    const endsAt = overLimit.get(`${attempt} ${network}`) ?? 0;
    return Math.max(0, Math.ceil((endsAt - performance.now()) / 1000));
  };
  const admitClient = async (attempt: LimitedAttempt, network: string) => {
    const seconds = secondsLeft(attempt, network);
    if (seconds > 0) return tooMany(seconds);
    const waitMs = await counter.take(CLIENT_LIMITS[attempt], network);
    if (waitMs === 0) return null;
    overLimit.set(`${attempt} ${network}`, performance.now() + waitMs);
    return tooMany(Math.ceil(waitMs / 1000));
  };
  return {
    /** Returns for how many seconds this process already knows a client to be over its limit; 0 if it does not. */
    secondsLeft,
    client: (attempt: ClientAttempt, network: string) => admitClient(attempt, network),
    /** @param from.device id of the known browser, if it is one */
    async signIn(email: string, { network, device }: { network: string; device: string | null }) {
      if (device !== null && (await take(DEVICE_LIMIT, device)) === null) return null;
      return (await admitClient("sign-in", network)) ?? take(ACCOUNT_LIMIT, normal(email));
    },
    changePassword: (userId: string) => take(USER_LIMIT, userId),
    /** Clears the attempts of a known browser, or those of all others at the account. */
    async forgive(email: string, device: string | null) {
      if (device === null) await counter.clear(ACCOUNT_LIMIT, normal(email));
      else await counter.clear(DEVICE_LIMIT, device);
    },
  };
}

export function tooMany(
  seconds: number,
  message = `Too many attempts. Try again in ${seconds} seconds.`,
): AuthFailure {
  return { ok: false, reason: "too_many", message, retryAfterSeconds: seconds };
}

/** The failure for more sign-ins than this process can check passwords for. */
export function crowded(): AuthFailure {
  return tooMany(CROWDED_SECONDS, "Many sign-ins are waiting right now. Try again in a few seconds.");
}

function normal(email: string): string {
  return email.trim().toLowerCase();
}
