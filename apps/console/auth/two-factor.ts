/**
 * A user's second factor: an authenticator app (TOTP), with backup codes. Turning it on, off, and new backup codes need
 * the password, within the limits on guesses of it.
 */
import type { CurrentUser } from "../../../core/control/accounts";
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

export interface TwoFactor {
  /** Prepares it; sign-ins ask for a code once `confirm` has shown that the app has the secret. */
  enable(request: Request, currentUser: CurrentUser, password: string): Promise<Setup | AuthFailure>;
  /** Renews the session. */
  confirm(request: Request, currentUser: CurrentUser, code: string): Promise<AuthAnswer>;
  /** Renews the session. */
  disable(request: Request, currentUser: CurrentUser, password: string): Promise<AuthAnswer>;
  /** The previous ones no longer work. */
  newCodes(request: Request, currentUser: CurrentUser, password: string): Promise<Setup | AuthFailure>;
}

interface Parts {
  call: ReturnType<typeof createLibraryCall>;
  /** Runs `work` within the limits on changes that need the password. */
  changes<Answer>(
    request: Request,
    currentUser: CurrentUser,
    work: () => Promise<Answer>,
  ): Promise<Answer | AuthFailure>;
  record(currentUser: CurrentUser, action: AuditAction): Promise<void>;
}

export function createTwoFactor({ call, changes, record }: Parts): TwoFactor {
  const setup = (request: Request, currentUser: CurrentUser, path: string, body: object) =>
    changes(request, currentUser, async (): Promise<Setup | AuthFailure> => {
      const { answer, shown } = await call(request, path, { body, isUrgent: true });
      return answer.ok ? { ok: true, ...shown } : answer;
    });
  const change = (
    request: Request,
    currentUser: CurrentUser,
    { path, body, action }: { path: string; body: object; action: AuditAction },
  ) =>
    changes(request, currentUser, async (): Promise<AuthAnswer> => {
      const { answer } = await call(request, path, { body, isUrgent: true });
      if (answer.ok) await record(currentUser, action);
      return answer;
    });
  return {
    enable: (request, currentUser, password) =>
      setup(request, currentUser, "/two-factor/enable", { password }),
    confirm: (request, currentUser, code) =>
      change(request, currentUser, {
        path: "/two-factor/verify-totp",
        body: { code },
        action: "two_factor.enabled",
      }),
    disable: (request, currentUser, password) =>
      change(request, currentUser, {
        path: "/two-factor/disable",
        body: { password },
        action: "two_factor.disabled",
      }),
    async newCodes(request, currentUser, password) {
      const made = await setup(request, currentUser, "/two-factor/generate-backup-codes", { password });
      if (made.ok) await record(currentUser, "two_factor.codes_renewed");
      return made;
    },
  };
}
