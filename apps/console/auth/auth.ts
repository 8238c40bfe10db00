/**
 * Sign-in, sign-up and passwords, by better-auth: the calls that pages may make, and their results in our words.
 *
 * The library's own HTTP routes are not reachable. Pages call its handler from inside, after our checks of origin and
 * form and our limits on attempts and mails.
 *
 * A1. Once addresses are confirmed by mail, no answer to a stranger reveals whether an address has an account: the
 *     answer is the same, and so is the work (a hash in both cases; mail is sent after the answer).
 * A2. The server creates a session's token at sign-in; a token that the browser sent is never adopted.
 */
import { createAttemptCounter } from "../../../core/attempts";
import type { Context } from "../../../core/context";
import {
  COMMON_PASSWORD,
  type CurrentUser,
  completeReset,
  currentUserOf,
  hasTwoFactor,
  isCommonPassword,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  nameOf,
  PasswordPlace,
} from "../../../core/control/accounts";
import { countUserEvent, recordUserEvent, type UserEvent } from "../../../core/control/audit";
import { isBasetideError } from "../../../core/errors";
import { clientAddress, networkOf } from "../../../core/http";
import { createMailer, type Mail, type Mailer } from "../../../core/mail";
import { createMailPermits, type MailPermit, type MailRequest } from "../../../core/mail-permits";
import { derivedKeys } from "../../../core/secrets";
import type { DocumentNetwork } from "./client-documents";
import { maySignUp } from "./closed-sign-ups";
import { createDevices } from "./devices";
import { createLibraryCall, type LibraryAnswer } from "./library-call";
import { type ClientAttempt, createAttemptLimits, crowded, type LimitedAttempt, tooMany } from "./limits";
import { mails } from "./mails";
import { createOAuth, loadOAuth } from "./oauth";
import { createProviders } from "./providers";
import { createResigner, hasSignedSession, SESSION_SECONDS } from "./resign";
import { codeOptions, codePath, createTwoFactor } from "./two-factor";

/** The result of a call: cookies to set, or a message to show. */
export type AuthAnswer =
  | {
      ok: true;
      cookies: Headers;
      hasSession: boolean;
      /** The password is right; the session begins with a code of the second factor. */
      needsCode?: boolean;
    }
  | { ok: false; reason: AuthError; message: string; retryAfterSeconds?: number };

export type AuthFailure = Extract<AuthAnswer, { ok: false }>;

export type AuthError =
  | "wrong_password"
  | "unconfirmed"
  | "taken"
  | "bad_address"
  | "bad_password"
  | "bad_link"
  | "provider_failed"
  | "wrong_code"
  | "code_expired"
  | "closed"
  | "too_many";

export type Auth = ReturnType<typeof createAuth>;

interface SignInForm {
  email: string;
  password: string;
  next: string;
}

type AuthContext = Pick<Context, "config" | "db" | "log">;

/** Stands for clients whose connection has ended. They share one counter. */
const UNKNOWN_CLIENT = "unknown";

/** @param network for tests: how the documents of clients are reached */
export function createAuth(
  ctx: AuthContext,
  mailer: Mailer = createMailer(ctx.config, ctx.log),
  network?: DocumentNetwork,
) {
  const { config, db, log } = ctx;
  const pending = new Set<Promise<unknown>>();
  const later = (work: Promise<unknown>) => {
    const done = work
      .catch((error: unknown) => log.error({ error }, "background task failed"))
      .finally(() => pending.delete(done));
    pending.add(done);
  };
  // Without a mail server, users could not sign in to an installation on their own machine. In production, where
  // strangers sign up, the operator creates a link on the command line.
  const confirmsAddresses = mailer.isConfigured || config.isProduction;
  const counter = createAttemptCounter(ctx);
  const limits = createAttemptLimits(counter);
  const permits = createMailPermits(ctx);
  const isSecure = config.consoleUrl.startsWith("https://");
  const devices = createDevices(db, derivedKeys(config, "devices"), isSecure);
  const notices = mails(config.consoleUrl);
  const keys = derivedKeys(config, "sessions");
  const resign = createResigner(
    keys,
    `Max-Age=${SESSION_SECONDS}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`,
  );
  /** Sends a notice about the security of an account, unless too many of its kind were sent. Never fails. */
  const notify = (mail: Mail, reason: MailRequest["reason"]): void => {
    const send = async () => mailer.send(mail, await permits.take({ reason, to: mail.to }));
    later(send().catch((error: unknown) => log.info({ error, reason }, "notice could not be sent")));
  };
  const parts = {
    mailer,
    confirmsAddresses,
    later,
    async onPasswordReset(user: { id: string; email: string }) {
      await completeReset(db, user);
      await limits.forgive(user.email, null);
      await permits.forgive({ reason: "reset", to: user.email });
      notify(notices.resetDone(user.email), "reset_notice");
    },
  };
  const load = async (options?: Parameters<typeof import("./library").createLibrary>[2]) =>
    (await import("./library")).createLibrary(ctx, parts, options);
  let loaded: ReturnType<typeof load> | undefined;
  // Its 20 MB are needed when someone signs in.
  const library = () => {
    loaded ??= load();
    return loaded;
  };
  const providers = createProviders(ctx, () => load({ providers: config.signInProviders }), resign);
  const call = createLibraryCall(config, async (request) => (await library()).handler(request), resign);

  const networkOfClient = (request: Request) =>
    networkOf(clientAddress(request, config.clientIpHeader) ?? UNKNOWN_CLIENT);
  /** Counts in the background, so that the answer for an address with an account takes no longer (A1). */
  const countLater = (request: Request, email: string, event: UserEvent) =>
    later(countUserEvent(db, email, { ...event, details: { last_from: networkOfClient(request) } }));
  const withinClientLimit = async <Answer>(
    request: Request,
    attempt: ClientAttempt,
    work: () => Promise<Answer>,
  ): Promise<Answer | AuthFailure> => (await limits.client(attempt, networkOfClient(request))) ?? work();
  /** Checks a password, unless too many wait. @param user whom the client is known to be; undefined: a stranger */
  const withPlace = async <Answer>(
    request: Request,
    user: string | undefined,
    work: (place: PasswordPlace) => Promise<Answer>,
  ): Promise<Answer | AuthFailure> => {
    using place = PasswordPlace.take(networkOfClient(request), user);
    if (!place) return crowded();
    try {
      return await work(place);
    } catch (error) {
      if (place.gaveWay.aborted) return crowded();
      throw error;
    }
  };
  /** Takes a permit for a mail, or answers that too many were sent. */
  const withPermit = async (
    mail: MailRequest,
    work: (permit: MailPermit) => Promise<AuthAnswer>,
  ): Promise<AuthAnswer> => {
    const permit = await permits.take(mail).catch((error: unknown) => {
      if (isBasetideError(error) && error.code === "rate_limited") return error;
      throw error;
    });
    if (!isBasetideError(permit)) return work(permit);
    return tooMany(Number(permit.details.retryAfterSeconds), permit.message);
  };
  /** Marks the browser as known to the account, if the call has proven that the account's user sent it. */
  const known = async (
    request: Request,
    { answer, user }: Pick<LibraryAnswer, "answer" | "user">,
  ): Promise<AuthAnswer> => {
    if (!answer.ok || user === null) return answer;
    const cookie = await devices.cookie(request, user.email);
    if (cookie !== null) answer.cookies.append("set-cookie", cookie);
    return answer;
  };

  const signedIn = async (
    user: { id: string; email: string },
    { network, device }: { network: string; device: string | null },
  ) => {
    const details = { from: network, browser: device === null ? "new" : "known" };
    await recordUserEvent(db, user, { action: "sign_in.succeeded", details });
    if (device === null) notify(notices.newBrowser(user.email, network, new Date()), "sign_in_notice");
  };

  /** Sends the link again to a user who knows the password. Over the limit, it is already in the mailbox. */
  const confirmAgain = (request: Request, email: string, next: string) =>
    withPermit({ reason: "sign_up", to: email, network: networkOfClient(request) }, async (permit) => {
      const body = { email, callbackURL: next };
      return (await call(request, "/send-verification-email", { body, permit })).answer;
    });

  return {
    /** Whether a user must confirm the address by mail before the first sign-in. */
    confirmsAddresses,
    /** False without a mail server. */
    deliversMail: mailer.isConfigured,
    notify,
    /** Clears the failed attempts at an account whose owner has proven the address in another way. */
    forgive: (email: string) => limits.forgive(email, null),
    /** Takes a permit for the mail that this request causes. @throws BasetideError `rate_limited` */
    permit: (request: Request, mail: Omit<MailRequest, "network">) =>
      permits.take({ ...mail, network: networkOfClient(request) }),
    /** Sends a mail in the background. */
    sendLater: (mail: Mail, permit: MailPermit) => later(mailer.send(mail, permit)),
    /**
     * Returns for how many seconds this request would be refused, because its client is over its limit of such attempts;
     * 0 if it must be handled to know. Needs no database, and nothing of the request's body.
     */
    refusedForSeconds(request: Request, attempt: LimitedAttempt): number {
      // L2: a known browser has a counter of its own.
      if (attempt === "sign-in" && devices.isClaimed(request)) return 0;
      return limits.secondsLeft(attempt, networkOfClient(request));
    },
    /** Resolves when all requested mail has been sent or has failed. */
    settled: async () => {
      while (pending.size > 0) await Promise.all(pending);
    },
    /** The user who sends this request, and the cookies to set if the session was extended. */
    async currentUser(request: Request) {
      if (!hasSignedSession(keys, request)) return { currentUser: null, cookies: [] };
      const sent = new Headers(request.headers);
      const resigned = resign(sent);
      const { response, headers } = await (await library()).api.getSession({
        headers: sent,
        returnHeaders: true,
      });
      const currentUser = response && (await currentUserOf(db, response.user, response.session.id));
      const cookies = headers.getSetCookie();
      return { currentUser, cookies: resigned && currentUser && cookies.length === 0 ? [resigned] : cookies };
    },
    /** `hasSession` is false if the address must be confirmed first. @param form.next a path of ours to open afterwards */
    signUp: (request: Request, { email, password, next }: SignInForm) =>
      withinClientLimit(request, "sign-up", async () => {
        if (config.signUps === "closed" && !(await maySignUp(db, email, next))) return closed();
        if (isOfGoodLength(password) && isCommonPassword(password, email)) return common();
        const mail = { reason: "sign_up", to: email, network: networkOfClient(request) } as const;
        return withPlace(request, undefined, (place) =>
          withPermit(mail, async (permit) => {
            const body = { email, password, name: nameOf(email), callbackURL: next };
            const done = await call(request, "/sign-up/email", { body, permit, place });
            return done.answer.ok && done.answer.hasSession ? known(request, done) : done.answer;
          }),
        );
      }),
    async signIn(request: Request, { email, password, next }: SignInForm) {
      const device = await devices.find(request, email);
      const network = networkOfClient(request);
      const refused = await limits.signIn(email, { network, device });
      if (refused) return refused;
      const body = { email, password };
      const isUrgent = device !== null;
      const done = await withPlace(request, isUrgent ? email : undefined, (place) =>
        call(request, "/sign-in/email", { body, isUrgent, place }),
      );
      if ("reason" in done) return done;
      const { answer, user } = done;
      if (!answer.ok) {
        if (answer.reason === "wrong_password") countLater(request, email, { action: "sign_in.failed" });
        if (answer.reason === "unconfirmed") await confirmAgain(request, email, next);
        return answer;
      }
      // The attempts of a password that was guessed count until a code has followed.
      if (answer.needsCode) return answer;
      await limits.forgive(email, device);
      if (user) await signedIn(user, { network, device });
      return known(request, done);
    },
    /** The second step of a sign-in. @param code of the app, or a backup code */
    signInWithCode: (request: Request, code: string) =>
      withinClientLimit(request, "sign-in-code", async () => {
        // With a session, the library would check the code of its user, without its limits, and use nothing up.
        const done = await call(request, codePath(code), { ...codeOptions(code), isWithoutSession: true });
        const { answer, user } = done;
        if (!answer.ok || user === null) return answer;
        const device = await devices.find(request, user.email);
        await limits.forgive(user.email, device);
        await signedIn(user, { network: networkOfClient(request), device });
        return known(request, done);
      }),
    /** Sign-in with other services. */
    providers: {
      list: providers.list,
      begin: (request: Request, provider: string, next: string) =>
        withinClientLimit(request, "sign-in-with", () => providers.begin(request, provider, next)),
      beginLink: (request: Request, provider: string) =>
        withinClientLimit(request, "sign-in-with", () => providers.beginLink(request, provider)),
      complete: (request: Request, provider: string) =>
        withinClientLimit(request, "sign-in-with", async () => {
          const done = await providers.complete(request, provider);
          if (!done.ok) return done;
          const { user, cookies, path } = done;
          if (path === undefined) {
            const details = { service: provider };
            if (user) await recordUserEvent(db, user, { action: "sign_in.linked", details });
            return done;
          }
          if (user === null) return done;
          const device = await devices.find(request, user.email);
          await signedIn(user, { network: networkOfClient(request), device });
          await known(request, { answer: { ok: true, cookies, hasSession: true }, user });
          return done;
        }),
    },
    /** Sign-in of agents' clients. */
    oauth: createOAuth(ctx, () => loadOAuth(ctx, load, network), resign),
    twoFactor: createTwoFactor({
      db,
      call,
      changes: (request, currentUser, work) =>
        withinClientLimit(
          request,
          "change-password",
          async () =>
            (await limits.changePassword(currentUser.userId)) ?? withPlace(request, currentUser.userId, work),
        ),
      record: ({ userId: id, email }, action) => recordUserEvent(db, { id, email }, { action }),
    }),
    signOut: async (request: Request) => (await call(request, "/sign-out", { body: {} })).answer,
    confirmAddress: (request: Request, token: string) =>
      withinClientLimit(request, "verify-email", async (): Promise<AuthAnswer> => {
        const done = await call(request, `/verify-email?${new URLSearchParams({ token })}`);
        if (!done.answer.ok || done.user === null) return done.answer;
        await limits.forgive(done.user.email, null);
        // A mailbox is one factor: the sign-in that follows asks for both.
        if (await hasTwoFactor(db, done.user.id))
          return { ok: true, cookies: new Headers(), hasSession: false };
        return known(request, done);
      }),
    requestReset: (request: Request, email: string) =>
      withinClientLimit(request, "request-reset", () =>
        withPermit({ reason: "reset", to: email, network: networkOfClient(request) }, async (permit) => {
          countLater(request, email, { action: "password.reset_requested" });
          return (await call(request, "/request-password-reset", { body: { email }, permit })).answer;
        }),
      ),
    /** Ends all of the user's sessions. */
    resetPassword: (request: Request, { token, password }: { token: string; password: string }) =>
      withinClientLimit(request, "reset-password", async () => {
        if (isOfGoodLength(password) && isCommonPassword(password)) return common();
        const body = { token, newPassword: password };
        return known(request, await call(request, "/reset-password", { body, isUrgent: true }));
      }),
    /** Ends the user's other sessions. */
    changePassword: (
      request: Request,
      currentUser: CurrentUser,
      { current, password }: { current: string; password: string },
    ) =>
      withinClientLimit(request, "change-password", async () => {
        const refused = await limits.changePassword(currentUser.userId);
        if (refused) return refused;
        if (isOfGoodLength(password) && isCommonPassword(password, currentUser.email)) return common();
        const body = { currentPassword: current, newPassword: password, revokeOtherSessions: true };
        const done = await withPlace(request, currentUser.userId, (place) =>
          call(request, "/change-password", { body, isUrgent: true, place }),
        );
        if ("reason" in done) return done;
        if (!done.answer.ok) return done.answer;
        const user = { id: currentUser.userId, email: currentUser.email };
        await recordUserEvent(db, user, { action: "password.changed" });
        return known(request, { answer: done.answer, user });
      }),
  };
}

/** Others are refused for their length. */
function isOfGoodLength({ length }: string): boolean {
  return length >= MIN_PASSWORD_LENGTH && length <= MAX_PASSWORD_LENGTH;
}

function common(): AuthFailure {
  return { ok: false, reason: "bad_password", message: COMMON_PASSWORD };
}

function closed(): AuthAnswer {
  const message =
    "Sign-ups are closed. Ask the operator of this service or an existing member for an invitation.";
  return { ok: false, reason: "closed", message };
}
