/**
 * A user's second factor: an authenticator app (TOTP), with backup codes. Turning it on needs the password; turning it off
 * and new backup codes need a code, too. All are within the limits on guesses of the password.
 *
 * Each code works once.
 */
import type { Db } from "../../../core/context";
import {
  type CurrentUser,
  claimCode,
  hasTwoFactor,
  isPasswordOf,
  type PasswordPlace,
} from "../../../core/control/accounts";
import type { AuditAction } from "../../../core/control/audit";
import type { AuthAnswer, AuthFailure } from "./auth";
import type { createLibraryCall } from "./library-call";

/** What the app needs, and the backup codes; to be shown once. */
interface Setup {
  ok: true;
  /** `otpauth://totp/…`, with the secret; undefined for new backup codes alone. */
  uri: string | undefined;
  codes: string[];
}

/** What a change of a second factor that is on needs. */
interface Proof {
  password: string;
  /** Of the app, or a backup code. */
  code: string;
}

interface Parts {
  db: Db;
  call: ReturnType<typeof createLibraryCall>;
  /** Runs `work` within the limits on changes that need the password. */
  changes<Answer>(
    request: Request,
    currentUser: CurrentUser,
    work: (place: PasswordPlace) => Promise<Answer>,
  ): Promise<Answer | AuthFailure>;
  record(currentUser: CurrentUser, action: AuditAction): Promise<void>;
}

const USED = "That code was used before. Enter the next one that your app shows.";

/** The library's path for a code of the app, or for a backup code, which has letters. */
export function codePath(code: string): string {
  return isAppCode(code) ? "/two-factor/verify-totp" : "/two-factor/verify-backup-code";
}

/** The options of a call that presents the code. */
export function codeOptions(code: string) {
  return { body: { code }, isUrgent: true, ...(isAppCode(code) && { appCode: code }) };
}

function isAppCode(code: string): boolean {
  return /^\d{6}$/.test(code);
}

export function createTwoFactor({ db, call, changes, record }: Parts) {
  /** The password first, so that a wrong one spends no code. */
  const prove = async (
    request: Request,
    { userId }: CurrentUser,
    { password, code }: Proof,
    place: PasswordPlace,
  ): Promise<AuthAnswer> => {
    if (!(await isPasswordOf(db, userId, password, place)))
      return { ok: false, reason: "wrong_password", message: "That password is incorrect." };
    const { answer } = await call(request, codePath(code), { body: { code }, isUrgent: true });
    // The library begins no session for a user who has one, so nothing else claims the code.
    if (answer.ok && isAppCode(code) && !(await claimCode(db, userId, code)))
      return { ok: false, reason: "wrong_code", message: USED };
    return answer;
  };
  return {
    /** Prepares it; sign-ins ask for a code once `confirm` has shown that the app has the secret. */
    enable: (request: Request, currentUser: CurrentUser, password: string) =>
      changes(request, currentUser, async (place): Promise<Setup | AuthFailure> => {
        const options = { body: { password }, isUrgent: true, place };
        const { answer, shown } = await call(request, "/two-factor/enable", options);
        return answer.ok ? { ok: true, ...shown } : answer;
      }),
    /** Renews the session. */
    confirm: (request: Request, currentUser: CurrentUser, code: string) =>
      changes(request, currentUser, async (): Promise<AuthAnswer> => {
        // The library would say whether the code is right, and nothing would claim it.
        if (await hasTwoFactor(db, currentUser.userId))
          return { ok: false, reason: "wrong_code", message: "Two-factor authentication is already on." };
        const { answer } = await call(request, "/two-factor/verify-totp", codeOptions(code));
        if (answer.ok) await record(currentUser, "two_factor.enabled");
        return answer;
      }),
    /** Renews the session. */
    disable: (request: Request, currentUser: CurrentUser, proof: Proof) =>
      changes(request, currentUser, async (place): Promise<AuthAnswer> => {
        const proven = await prove(request, currentUser, proof, place);
        if (!proven.ok) return proven;
        const body = { password: proof.password };
        const { answer } = await call(request, "/two-factor/disable", { body, isUrgent: true, place });
        if (answer.ok) await record(currentUser, "two_factor.disabled");
        return answer;
      }),
    /** The previous ones no longer work. */
    newCodes: (request: Request, currentUser: CurrentUser, proof: Proof) =>
      changes(request, currentUser, async (place): Promise<Setup | AuthFailure> => {
        const proven = await prove(request, currentUser, proof, place);
        if (!proven.ok) return proven;
        const body = { password: proof.password };
        const options = { body, isUrgent: true, place };
        const { answer, shown } = await call(request, "/two-factor/generate-backup-codes", options);
        if (!answer.ok) return answer;
        await record(currentUser, "two_factor.codes_renewed");
        return { ok: true, ...shown };
      }),
  };
}
