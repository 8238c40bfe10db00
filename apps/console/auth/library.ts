/** How better-auth is set up: our tables, our hashes, our mails, limits that all consoles share. */
import { createHmac } from "node:crypto";
import { betterAuth } from "better-auth/minimal";
import type { Context } from "../../../core/context";
import {
  hashPassword,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  newId,
  verifyPassword,
} from "../../../core/control";
import type { Mailer } from "../../../core/mail";
import { loadSecretKeys } from "../../../core/secrets";
import { controlAdapter } from "./adapter";
import { mails } from "./mails";

export const BASE_PATH = "/auth";
/** Carries the client's address to the library; set by us on requests that we make, so nobody else can. */
export const ADDRESS_HEADER = "x-basetide-client";

const DAY_SECONDS = 24 * 60 * 60;
export const SESSION_SECONDS = 30 * DAY_SECONDS;
const CONFIRM_SECONDS = DAY_SECONDS;
const RESET_SECONDS = 60 * 60;

/** Attempts of one client's address by kind, over all consoles: at most `max` within `window` seconds. */
const LIMITS = {
  "/sign-in/email": { window: 60, max: 10 },
  "/sign-up/email": { window: 60, max: 10 },
  "/change-password": { window: 60, max: 10 },
  "/reset-password": { window: 60, max: 10 },
  "/verify-email": { window: 60, max: 20 },
  "/request-password-reset": { window: 600, max: 5 },
};

/** The library's models, and the kinds of our ids. */
const idKinds = {
  user: "user",
  session: "session",
  account: "user_login",
  verification: "verification",
  rateLimit: "rate_limit",
} as const;

const timestamps = { createdAt: "created_at", updatedAt: "updated_at" };

export interface LibraryParts {
  mailer: Mailer;
  confirmsAddresses: boolean;
  /** Takes work that no answer waits for. */
  later(work: Promise<unknown>): void;
}

/**
 * What sessions are signed with, the current key first: keys of their own, so that nothing signed here means anything
 * to what SECRET_KEY encrypts.
 */
export function sessionKeys(config: Parameters<typeof loadSecretKeys>[0]): string[] {
  return loadSecretKeys(config).map((key) =>
    createHmac("sha256", Buffer.from(key, "base64")).update("sessions").digest("base64"),
  );
}

export function createLibrary(ctx: Pick<Context, "config" | "db" | "log">, parts: LibraryParts) {
  const { config, db, log } = ctx;
  const { mailer, confirmsAddresses, later } = parts;
  const mail = mails(config.consoleUrl);
  return betterAuth({
    appName: "Basetide",
    baseURL: config.consoleUrl,
    basePath: BASE_PATH,
    secret: sessionKeys(config)[0]!,
    database: controlAdapter(db),
    telemetry: { enabled: false },
    logger: {
      level: "warn",
      log: (level, message) => (level === "error" ? log.error : log.debug).call(log, { level }, message),
    },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: confirmsAddresses,
      minPasswordLength: MIN_PASSWORD_LENGTH,
      maxPasswordLength: MAX_PASSWORD_LENGTH,
      password: {
        hash: hashPassword,
        verify: ({ password, hash }) => verifyPassword(password, hash),
      },
      resetPasswordTokenExpiresIn: RESET_SECONDS,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: ({ user, token }) => mailer.send(mail.reset(user.email, token)),
      // Whoever asks sees the same page; whoever reads the mail learns that somebody tried.
      onExistingUserSignUp: ({ user }) => mailer.send(mail.known(user.email)),
    },
    emailVerification: {
      sendOnSignUp: confirmsAddresses,
      sendOnSignIn: confirmsAddresses,
      autoSignInAfterVerification: true,
      expiresIn: CONFIRM_SECONDS,
      sendVerificationEmail: ({ user, url, token }) => {
        const next = new URL(url).searchParams.get("callbackURL") ?? "/";
        return mailer.send(mail.confirm(user.email, token, next));
      },
    },
    user: { modelName: "users", fields: { emailVerified: "email_verified", ...timestamps } },
    session: {
      modelName: "sessions",
      expiresIn: SESSION_SECONDS,
      updateAge: DAY_SECONDS,
      fields: {
        userId: "user_id",
        expiresAt: "expires_at",
        ipAddress: "ip_address",
        userAgent: "user_agent",
        ...timestamps,
      },
    },
    account: {
      modelName: "user_logins",
      fields: {
        userId: "user_id",
        accountId: "account_id",
        providerId: "provider_id",
        accessToken: "access_token",
        refreshToken: "refresh_token",
        idToken: "id_token",
        accessTokenExpiresAt: "access_token_expires_at",
        refreshTokenExpiresAt: "refresh_token_expires_at",
        ...timestamps,
      },
    },
    // The link's token is its identifier: who reads the table must not set anybody's password.
    verification: {
      storeIdentifier: "hashed",
      modelName: "verifications",
      fields: { expiresAt: "expires_at", ...timestamps },
    },
    rateLimit: {
      enabled: true,
      storage: "database",
      modelName: "rate_limits",
      fields: { lastRequest: "last_request" },
      window: 60,
      max: 100,
      customRules: LIMITS,
    },
    advanced: {
      cookiePrefix: "basetide",
      useSecureCookies: config.consoleUrl.startsWith("https://"),
      database: {
        generateId: ({ model }) => newId(idKinds[model as keyof typeof idKinds] ?? "verification"),
      },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
      backgroundTasks: { handler: later },
      // Only our own pages call it, and they have checked where a form came from, and send no addresses of others.
      disableCSRFCheck: true,
      disableOriginCheck: true,
    },
  });
}
