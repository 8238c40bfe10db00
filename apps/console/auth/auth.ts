/**
 * Signing in and all around it, by better-auth: what the pages may ask of it, and what it answers in our words.
 *
 * The library's own HTTP routes are open to nobody: pages call its handler from inside, so that its limits on attempts
 * hold, and our checks of origin and form come first.
 *
 * A1. Once addresses are confirmed by mail, nothing that a stranger can ask tells whether an address has an account: the
 *     answer is the same and so is the work (a hash in both cases; mail goes out after the answer).
 * A2. A session's token is made by the server at sign-in; what a browser brought along is never adopted.
 */
import type { Context } from "../../../core/context";
import { actorOf, nameOf, noteChange, type Viewer, viewerOf } from "../../../core/control";
import { clientAddress } from "../../../core/http/client-address";
import { createMailer, type Mail, type Mailer } from "../../../core/mail";
import { createAttempts, tooMany } from "./attempts";
import { ADDRESS_HEADER, BASE_PATH, createLibrary, SESSION_SECONDS, sessionKeys } from "./library";
import { createResigner } from "./resign";

/** How a call ended: with cookies to set, or with what to say to a person. */
export type AuthAnswer =
  | { ok: true; cookies: Headers; hasSession: boolean }
  | { ok: false; reason: AuthTrouble; message: string; retryAfterSeconds?: number };

export type AuthFailure = Extract<AuthAnswer, { ok: false }>;

export type AuthTrouble =
  | "wrong_password"
  | "unconfirmed"
  | "taken"
  | "bad_address"
  | "bad_password"
  | "bad_link"
  | "too_many";

export interface Auth {
  /** Must an address be confirmed by mail before it opens anything? */
  confirmsAddresses: boolean;
  /** False: mail goes to the log. */
  deliversMail: boolean;
  /** Who sends this request, and the cookies to set where the session was prolonged. */
  viewer(request: Request): Promise<{ viewer: Viewer | null; cookies: string[] }>;
  /** `hasSession` is false where the address is to be confirmed first. @param form.next a path of ours to go to then */
  signUp(request: Request, form: { email: string; password: string; next: string }): Promise<AuthAnswer>;
  signIn(request: Request, form: { email: string; password: string; next: string }): Promise<AuthAnswer>;
  signOut(request: Request): Promise<AuthAnswer>;
  confirmAddress(request: Request, token: string): Promise<AuthAnswer>;
  requestReset(request: Request, email: string): Promise<AuthAnswer>;
  /** Ends all of the user's sessions. */
  resetPassword(request: Request, form: { token: string; password: string }): Promise<AuthAnswer>;
  /** Ends the user's other sessions. */
  changePassword(
    request: Request,
    viewer: Viewer,
    form: { current: string; password: string },
  ): Promise<AuthAnswer>;
  /** Sends a mail without keeping anybody waiting. */
  sendLater(mail: Mail): void;
  /** All mail that was asked for has gone out, or failed. */
  settled(): Promise<void>;
}

type AuthContext = Pick<Context, "config" | "db" | "log">;

export function createAuth(ctx: AuthContext, mailer: Mailer = createMailer(ctx.config, ctx.log)): Auth {
  const { config, db, log } = ctx;
  const pending = new Set<Promise<unknown>>();
  const later = (work: Promise<unknown>) => {
    const done = work
      .catch((error: unknown) => log.error({ error }, "work after an answer failed"))
      .finally(() => pending.delete(done));
    pending.add(done);
  };
  // Where mail reaches nobody, a person could not get into the service on their own machine; in production, where
  // strangers ask, it is for the operator to pass on the link in the log.
  const confirmsAddresses = mailer.isConfigured || config.isProduction;
  const library = createLibrary(ctx, { mailer, confirmsAddresses, later });
  const attempts = createAttempts(db);
  const secure = config.consoleUrl.startsWith("https://") ? "; Secure" : "";
  const resign = createResigner(
    sessionKeys(config),
    `Max-Age=${SESSION_SECONDS}; Path=/; HttpOnly; SameSite=Lax${secure}`,
  );

  const call = async (request: Request, path: string, body?: object): Promise<AuthAnswer> => {
    const headers = new Headers({ "content-type": "application/json" });
    for (const name of ["cookie", "user-agent"]) {
      const value = request.headers.get(name);
      if (value !== null) headers.set(name, value);
    }
    resign(headers);
    const address = clientAddress(request, config.clientIpHeader);
    if (address !== null) headers.set(ADDRESS_HEADER, address);
    const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
    return toAnswer(await library.handler(new Request(`${config.consoleUrl}${BASE_PATH}${path}`, init)));
  };

  return {
    confirmsAddresses,
    deliversMail: mailer.isConfigured,
    sendLater: (mail) => later(mailer.send(mail)),
    settled: async () => void (await Promise.all(pending)),
    async viewer(request) {
      if (!request.headers.has("cookie")) return { viewer: null, cookies: [] };
      const sent = new Headers(request.headers);
      const resigned = resign(sent);
      const { response, headers } = await library.api.getSession({ headers: sent, returnHeaders: true });
      const viewer = response && (await viewerOf(db, response.user, response.session.id));
      const cookies = headers.getSetCookie();
      return { viewer, cookies: resigned && viewer && cookies.length === 0 ? [resigned] : cookies };
    },
    signUp: (request, { email, password, next }) =>
      attempts.limit("mail", email, () =>
        call(request, "/sign-up/email", { email, password, name: nameOf(email), callbackURL: next }),
      ),
    signIn: (request, { email, password, next }) =>
      attempts.limit("sign-in", email, () =>
        call(request, "/sign-in/email", { email, password, callbackURL: next }),
      ),
    signOut: (request) => call(request, "/sign-out", {}),
    confirmAddress: (request, token) => call(request, `/verify-email?${new URLSearchParams({ token })}`),
    requestReset: (request, email) =>
      attempts.limit("mail", email, () => call(request, "/request-password-reset", { email })),
    resetPassword: (request, { token, password }) =>
      call(request, "/reset-password", { token, newPassword: password }),
    async changePassword(request, viewer, { current, password }) {
      const answer = await call(request, "/change-password", {
        currentPassword: current,
        newPassword: password,
        revokeOtherSessions: true,
      });
      const own = viewer.accounts.find(({ role }) => role === "owner") ?? viewer.account;
      const change = { accountId: own.id, action: "password.changed", subject: viewer.userId } as const;
      if (answer.ok) await noteChange(db, actorOf(viewer), change);
      return answer;
    },
  };
}

/** The library's codes, as what went wrong. */
const troubles: Record<string, [AuthTrouble, string]> = {
  INVALID_EMAIL_OR_PASSWORD: ["wrong_password", "E-mail and password do not match an account."],
  INVALID_PASSWORD: ["wrong_password", "That is not your password."],
  EMAIL_NOT_VERIFIED: ["unconfirmed", "Confirm your address first: we have sent you the link once more."],
  USER_ALREADY_EXISTS: ["taken", "This address has an account. Sign in instead."],
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: ["taken", "This address has an account. Sign in instead."],
  INVALID_EMAIL: ["bad_address", "That is not an e-mail address."],
  VALIDATION_ERROR: ["bad_address", "That is not an e-mail address."],
  PASSWORD_TOO_SHORT: ["bad_password", "A password has at least 8 characters."],
  PASSWORD_TOO_LONG: ["bad_password", "A password has at most 1000 characters."],
  INVALID_TOKEN: ["bad_link", "This link has been used, or is too old. Ask for a new one."],
  TOKEN_EXPIRED: ["bad_link", "This link is too old. Ask for a new one."],
  USER_NOT_FOUND: ["bad_link", "This link has been used, or is too old. Ask for a new one."],
};

/** @throws Error for an answer that no form can lead to: a fault of ours */
async function toAnswer(response: Response): Promise<AuthAnswer> {
  if (response.status === 429) {
    const seconds = Number(response.headers.get("x-retry-after")) || 60;
    return tooMany(seconds);
  }
  const cookies = new Headers(response.headers.getSetCookie().map((cookie) => ["set-cookie", cookie]));
  const body: { code?: string; message?: string } | null = await response.json();
  if (response.ok) return { ok: true, cookies, hasSession: cookies.has("set-cookie") };
  const [reason, message] = troubles[body?.code ?? ""] ?? [];
  if (reason && message) return { ok: false, reason, message };
  throw new Error(`better-auth answered ${response.status} ${body?.code}: ${body?.message}`);
}
