/** Configures better-auth: our tables, our hashes, our mails. */
import { APIError, isAPIError } from "better-auth/api";
import { betterAuth } from "better-auth/minimal";
import { genericOAuth } from "better-auth/plugins/generic-oauth";
import { twoFactor } from "better-auth/plugins/two-factor";
import type { BetterAuthPlugin } from "better-auth/types";
import type { SignInProvider } from "../../../core/config";
import type { Context } from "../../../core/context";
import {
  claimCode,
  hashPassword,
  hasTwoFactor,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  verifyPassword,
} from "../../../core/control/accounts";
import { newId } from "../../../core/ids";
import type { Mail, Mailer } from "../../../core/mail";
import { numberedKeys } from "../../../core/secrets";
import { DAY_MS, SECOND_MS } from "../../../core/time-units";
import { controlAdapter } from "./adapter";
import { ADDRESS_HEADER, BASE_PATH, CODE_USED, callScope, USED_CODE } from "./library-call";
import { mails } from "./mails";
import { CODE_SECONDS, SESSION_SECONDS } from "./resign";

const DAY_SECONDS = DAY_MS / SECOND_MS;
/** At least the window of the limit on these mails (M2). */
const RESET_SECONDS = 60 * 60;

const NO_TOKENS = { accessToken: null, refreshToken: null, idToken: null };

/** The library's models, and the prefix kinds of our ids. */
const idKinds = {
  user: "user",
  session: "session",
  account: "user_login",
  verification: "verification",
  twoFactor: "two_factor",
  oauthAccessToken: "oauth",
  oauthClient: "oauth",
  oauthConsent: "connection",
  oauthRefreshToken: "oauth",
  oauthResource: "oauth",
} as const;

const timestamps = { createdAt: "created_at", updatedAt: "updated_at" };

interface LibraryParts {
  mailer: Mailer;
  confirmsAddresses: boolean;
  /** Runs work in the background that no answer waits for. */
  later(work: Promise<unknown>): void;
  /** Called after a user has set a new password with a mailed link. */
  onPasswordReset(user: { id: string; email: string }): Promise<void>;
}

interface LibraryOptions {
  /**
   * That people may sign in with. The library asks each for its addresses when it is created, and waits for them before
   * every call: an instance with providers is for these sign-ins alone.
   */
  providers?: SignInProvider[];
  plugins?: BetterAuthPlugin[];
  /** Default: `/auth`. */
  basePath?: string;
  /** Where the library sends people with errors that belong to no other page. */
  errorUrl?: string;
}

export function createLibrary(
  ctx: Pick<Context, "config" | "db" | "log">,
  parts: LibraryParts,
  { providers = [], plugins = [], basePath = BASE_PATH, errorUrl }: LibraryOptions = {},
) {
  const { config, db, log } = ctx;
  const { mailer, confirmsAddresses, later } = parts;
  const mail = mails(config.consoleUrl);
  /** A call without a permit sends no mail, whatever the library wants to send. */
  const send = async (one: Mail) => {
    const permit = callScope.getStore()?.permit;
    if (permit?.to === one.to.toLowerCase()) await mailer.send(one, permit);
    else log.error({ subject: one.subject }, "mail not sent: the request has no mail permit");
  };
  /** What a client did wrong, it is told; the library would print it. */
  const reportFault = (error: unknown) => {
    if (!isAPIError(error) || error.status === "INTERNAL_SERVER_ERROR")
      log.error({ error }, "the sign-in of a client failed");
  };
  return betterAuth({
    appName: "Basetide",
    baseURL: config.consoleUrl,
    basePath,
    ...(errorUrl && { onAPIError: { errorURL: errorUrl, onError: reportFault } }),
    secrets: numberedKeys(config, "sessions"),
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
        hash: (password) => hashPassword(password, callScope.getStore()),
        verify: ({ password, hash }) => verifyPassword(password, hash, callScope.getStore()),
      },
      resetPasswordTokenExpiresIn: RESET_SECONDS,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: ({ user, token }) => send(mail.reset(user.email, token)),
      onPasswordReset: async ({ user: { id, email } }) => {
        Object.assign(callScope.getStore() ?? {}, { user: { id, email } });
        await parts.onPasswordReset({ id, email });
      },
      // The page is the same for everyone; only the reader of the mail learns about the attempt.
      onExistingUserSignUp: ({ user }) => send(mail.known(user.email)),
    },
    emailVerification: {
      sendOnSignUp: confirmsAddresses,
      // `signIn` does it, within the limits on mail.
      sendOnSignIn: false,
      autoSignInAfterVerification: true,
      afterEmailVerification: async ({ id, email }) => {
        Object.assign(callScope.getStore() ?? {}, { user: { id, email } });
      },
      expiresIn: DAY_SECONDS,
      sendVerificationEmail: ({ user, url, token }) => {
        const next = new URL(url).searchParams.get("callbackURL") ?? "/";
        return send(mail.confirm(user.email, token, next));
      },
    },
    user: {
      modelName: "users",
      fields: { emailVerified: "email_verified", ...timestamps },
      validateUserInfo: async ({ user, source }) => {
        if (source.method !== "oauth") return undefined;
        // An address that the provider has not verified may be someone else's.
        if (user.emailVerified !== true) return { error: "email_not_verified" };
        const isKnown = source.action !== "create-user" && user.id !== undefined;
        // The provider is one factor: the user asked for two of ours.
        if (isKnown && (await hasTwoFactor(db, user.id!))) return { error: "two_factor_on" };
        return undefined;
      },
    },
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
    databaseHooks: {
      // Nothing uses a provider's tokens, so they are not stored.
      account: {
        create: {
          before: async (account) => ({ data: { ...account, ...NO_TOKENS } }),
          after: async ({ userId }) => {
            Object.assign(callScope.getStore() ?? {}, { loginOf: userId });
          },
        },
        update: { before: async (account) => ({ data: { ...account, ...NO_TOKENS } }) },
      },
      session: {
        create: {
          before: async ({ userId }) => {
            const { appCode } = callScope.getStore() ?? {};
            if (appCode && !(await claimCode(db, userId, appCode)))
              throw new APIError("UNAUTHORIZED", { code: CODE_USED, message: USED_CODE });
          },
          after: async ({ userId }) => {
            Object.assign(callScope.getStore() ?? {}, { sessionOf: userId });
          },
        },
      },
    },
    account: {
      updateAccountOnSignIn: false,
      // Users link services under Settings: what they have unlinked stays unlinked.
      accountLinking: { disableImplicitLinking: true },
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
    // The link's token is its identifier, so it is hashed: read access to the table must not be enough to set a
    // password.
    verification: {
      storeIdentifier: "hashed",
      modelName: "verifications",
      fields: { expiresAt: "expires_at", ...timestamps },
    },
    plugins: [
      ...plugins,
      genericOAuth({
        config: providers.map(({ id, name, issuer, clientId, clientSecret }) => ({
          providerId: id,
          name,
          clientId,
          clientSecret,
          discoveryUrl: `${issuer}/.well-known/openid-configuration`,
          scopes: ["openid", "email", "profile"],
          requireIdTokenVerification: true,
          disableSignUp: config.signUps === "closed",
        })),
      }),
      twoFactor({
        issuer: "Basetide",
        twoFactorCookieMaxAge: CODE_SECONDS,
        schema: {
          user: { fields: { twoFactorEnabled: "two_factor_enabled" } },
          twoFactor: {
            modelName: "two_factors",
            fields: {
              userId: "user_id",
              backupCodes: "backup_codes",
              failedVerificationCount: "failed_verification_count",
              lockedUntil: "locked_until",
            },
          },
        },
      }),
    ],
    // Our limits count the client first, then the account, in one table of bounded size (`limits.ts`).
    rateLimit: { enabled: false },
    advanced: {
      cookiePrefix: "basetide",
      useSecureCookies: config.consoleUrl.startsWith("https://"),
      database: {
        generateId: ({ model }) => newId(idKinds[model as keyof typeof idKinds] ?? "verification"),
      },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
      backgroundTasks: { handler: later },
      // Only our own pages call it. They have checked the origin of the form, and pass only paths of ours.
      disableCSRFCheck: true,
      disableOriginCheck: true,
    },
  });
}
