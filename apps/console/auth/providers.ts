/**
 * Sign-in with OpenID Connect providers, by better-auth: Google, and any other issuer.
 *
 * The library fetches a provider's addresses when it is created, and its other calls would wait for them. So these
 * sign-ins have an instance of their own, which is created when it is first needed, and again after a failure.
 */
import { withTimeout } from "../../../core/async";
import type { Config } from "../../../core/config";
import type { Context } from "../../../core/context";
import type { AuthFailure } from "./auth";
import type { createLibrary } from "./library";
import { createRawCall } from "./library-call";

/** Two requests to the provider, at most. */
const TIMEOUT_MS = 15_000;
/** Where the library sends people whose sign-in failed, and all who link a service; only compared with. */
const FAILED_PATH = "/sign-in";
const LINK_PATH = "/account";

interface Begun {
  ok: true;
  url: string;
  cookies: Headers;
}

interface Completed {
  ok: true;
  cookies: Headers;
  /** Whose session began, or who linked the service; null: the service was linked before. */
  user: { id: string; email: string } | null;
  /** Where a sign-in leads; undefined: the service was linked. */
  path?: string;
}

type Library = Promise<ReturnType<typeof createLibrary>>;

type ProviderContext = Pick<Context, "db" | "log"> & {
  config: Pick<Config, "clientIpHeader" | "consoleUrl" | "signInProviders">;
};

/** @param create the library, with the providers */
export function createProviders(
  { config, db, log }: ProviderContext,
  create: () => Library,
  prepare: (headers: Headers) => unknown,
) {
  const list = config.signInProviders.map(({ id, name }) => ({ id, name }));
  let library: Library | undefined;
  const call = async (request: Request, path: string, body?: object) => {
    library ??= create();
    try {
      const { handler } = await library;
      const answer = createRawCall(config, handler, prepare)(request, path, body ? { body } : {});
      return await withTimeout(TIMEOUT_MS, noAnswer, answer);
    } catch (error) {
      library = undefined;
      throw error;
    }
  };
  const unreachable = (provider: string, error: unknown): AuthFailure => {
    library = undefined;
    log.warn({ error, provider }, "sign-in provider cannot be used");
    return failure("This sign-in service cannot be reached. Try again, or use your password.");
  };
  const begin = async (
    request: Request,
    path: string,
    body: { provider: string; callbackURL: string; errorCallbackURL: string },
  ): Promise<Begun | AuthFailure> => {
    try {
      const { response } = await call(request, path, { ...body, disableRedirect: true });
      const { url } = (await response.json()) as { url?: string };
      if (!response.ok || url === undefined) return unreachable(body.provider, response.status);
      return { ok: true, url, cookies: cookiesOf(response) };
    } catch (error) {
      return unreachable(body.provider, error);
    }
  };
  return {
    /** As the sign-in page shows them. */
    list,
    /** Begins a sign-in. @param next a path of ours to open afterwards */
    begin: (request: Request, provider: string, next: string) =>
      begin(request, "/sign-in/social", { provider, callbackURL: next, errorCallbackURL: FAILED_PATH }),
    /** Begins to link a service to the user of the session. */
    beginLink: (request: Request, provider: string) =>
      begin(request, "/link-social", { provider, callbackURL: LINK_PATH, errorCallbackURL: LINK_PATH }),
    /** Completes either, after the provider has sent the browser back. */
    async complete(
      request: Request,
      provider: string,
    ): Promise<Completed | (AuthFailure & { isLink?: boolean })> {
      const { search } = new URL(request.url);
      try {
        const { response, scope } = await call(request, `/callback/${encodeURIComponent(provider)}${search}`);
        const location = new URL(response.headers.get("location") ?? FAILED_PATH, config.consoleUrl);
        const error = location.searchParams.get("error");
        const isLink = scope.sessionOf === undefined && location.pathname === LINK_PATH;
        if (error !== null || (scope.sessionOf === undefined && !isLink)) {
          return { ...failure(messageOf(error)), isLink };
        }
        const [user = null] = await db<{ id: string; email: string }[]>`
          select id, email from users where id = ${scope.sessionOf ?? scope.loginOf ?? null}`;
        const done: Completed = { ok: true, cookies: cookiesOf(response), user };
        return isLink ? done : { ...done, path: `${location.pathname}${location.search}` };
      } catch (error) {
        return unreachable(provider, error);
      }
    },
  };
}

function noAnswer(): never {
  throw new Error(`the provider did not answer within ${TIMEOUT_MS} ms`);
}

/** The library's codes that a person can do something about. */
const messages: Record<string, string> = {
  email_not_verified: "The service does not confirm that this address is yours. Use your password.",
  email_not_found: "The service did not tell your e-mail address. Use your password.",
  two_factor_on: "This account has a second factor. Sign in with your password and a code.",
  account_not_linked:
    "This address has an account already. Sign in with your password, then link the service under Settings.",
  email_does_not_match:
    "The service has another address of yours. Link one with the address of this account.",
  account_already_linked_to_different_user: "Another account here is linked to that person already.",
  signup_disabled:
    "Sign-ups are closed. With an invitation, sign up by its link with a password, then link the service under Settings.",
  access_denied: "You cancelled the sign-in.",
};

function messageOf(code: string | null): string {
  const known = Object.hasOwn(messages, code ?? "") ? messages[code!] : undefined;
  return known ?? "The sign-in did not work. Try again, or use your password.";
}

function failure(message: string): AuthFailure {
  return { ok: false, reason: "provider_failed", message };
}

function cookiesOf(response: Response): Headers {
  return new Headers(response.headers.getSetCookie().map((cookie) => ["set-cookie", cookie]));
}
