/** Calls the library from inside, as one of its HTTP requests, and translates its answers. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Config } from "../../../core/config";
import type { PasswordPlace } from "../../../core/control/accounts";
import { clientAddress } from "../../../core/http";
import type { MailPermit } from "../../../core/mail-permits";
import type { AuthAnswer, AuthError } from "./auth";
import { leaveSession } from "./resign";

export const BASE_PATH = "/auth";
/** Passes the client's address to the library, on requests that we create ourselves. */
export const ADDRESS_HEADER = "x-basetide-client";

/** Our code for a right code that was used before. */
export const CODE_USED = "CODE_USED";
export const USED_CODE = "That code was used before. Sign in again, with the next code that your app shows.";

/** What a call may do, and what the library's callbacks report during it. */
interface CallScope {
  /** For the mail that the call sends. Without a permit, no mail is sent. */
  permit?: MailPermit;
  /** Its passwords are checked before those of strangers. */
  isUrgent?: boolean;
  /** The code of an app that the call presents: a session that follows from it spends it. */
  appCode?: string;
  /** In the queue of passwords to check. */
  place?: PasswordPlace;
  /** The agent that a member connects a client to. */
  agentId?: string;
  /** The user whose address or password the call has confirmed. */
  user?: { id: string; email: string };
  /** The id of the user for whom the call has created a session. */
  sessionOf?: string;
  /** The id of the user to whom the call has added a way to sign in. */
  loginOf?: string;
}

export const callScope = new AsyncLocalStorage<CallScope>();

export interface LibraryAnswer {
  answer: AuthAnswer;
  /** The user that the call was about, if it succeeded. */
  user: { id: string; email: string } | null;
  /** What a call about second factors returns: to be shown once. */
  shown: { uri: string | undefined; codes: string[] };
}

interface CallOptions {
  body?: object;
  permit?: MailPermit;
  isUrgent?: boolean;
  appCode?: string;
  place?: PasswordPlace | undefined;
  /** The call ignores the session of the request. */
  isWithoutSession?: boolean;
}

type LibraryCall = (request: Request, path: string, options?: CallOptions) => Promise<LibraryAnswer>;

interface RawAnswer {
  response: Response;
  scope: CallScope;
}

/** @param prepare adapts the headers of each call */
export function createLibraryCall(
  config: Pick<Config, "clientIpHeader" | "consoleUrl">,
  handler: (request: Request) => Promise<Response>,
  prepare: (headers: Headers) => unknown,
): LibraryCall {
  const call = createRawCall(config, handler, prepare);
  return async (request, path, options) => {
    const { response, scope } = await call(request, path, options);
    return toAnswer(response, scope);
  };
}

/** Calls the library, and returns its answer as it is. */
export function createRawCall(
  config: Pick<Config, "clientIpHeader" | "consoleUrl">,
  handler: (request: Request) => Promise<Response>,
  prepare: (headers: Headers) => unknown,
): (request: Request, path: string, options?: CallOptions) => Promise<RawAnswer> {
  return async (request, path, options = {}) => {
    const { body, permit, isUrgent = false, appCode, place, isWithoutSession = false } = options;
    const headers = new Headers({ "content-type": "application/json" });
    for (const name of ["cookie", "user-agent"]) {
      const value = request.headers.get(name);
      if (value !== null) headers.set(name, value);
    }
    prepare(headers);
    if (isWithoutSession) leaveSession(headers);
    const address = clientAddress(request, config.clientIpHeader);
    if (address !== null) headers.set(ADDRESS_HEADER, address);
    const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
    const inner = new Request(`${config.consoleUrl}${BASE_PATH}${path}`, init);
    const scope: CallScope = {
      isUrgent,
      ...(permit && { permit }),
      ...(appCode && { appCode }),
      ...(place && { place }),
    };
    return { response: await callScope.run(scope, () => handler(inner)), scope };
  };
}

/** Maps the library's codes to our errors; without a code, its status. */
const troubles: Record<string, [AuthError, string]> = {
  INVALID_EMAIL_OR_PASSWORD: ["wrong_password", "E-mail or password is incorrect."],
  INVALID_PASSWORD: ["wrong_password", "That password is incorrect."],
  CREDENTIAL_ACCOUNT_NOT_FOUND: [
    "wrong_password",
    "You have no password yet. Sign out, and set one with “Forgot your password?”.",
  ],
  EMAIL_NOT_VERIFIED: ["unconfirmed", "Confirm your address first. We have sent you the link again."],
  USER_ALREADY_EXISTS: ["taken", "This address already has an account. Sign in instead."],
  USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL: ["taken", "This address already has an account. Sign in instead."],
  INVALID_EMAIL: ["bad_address", "Enter a valid e-mail address."],
  VALIDATION_ERROR: ["bad_address", "Enter a valid e-mail address."],
  PASSWORD_TOO_SHORT: ["bad_password", "The password must have at least 8 characters."],
  PASSWORD_TOO_LONG: ["bad_password", "The password must have at most 1000 characters."],
  INVALID_TOKEN: ["bad_link", "This link has been used or has expired. Request a new one."],
  INVALID_CODE: ["wrong_code", "That code is incorrect. Codes change every 30 seconds."],
  [CODE_USED]: ["code_expired", USED_CODE],
  INVALID_BACKUP_CODE: ["wrong_code", "That code is incorrect, or was used before."],
  // It has no code.
  409: ["code_expired", "Another sign-in used a backup code at the same moment. Sign in again."],
  INVALID_TWO_FACTOR_COOKIE: ["code_expired", "Too much time has passed. Sign in again."],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ["code_expired", "Too many wrong codes. Sign in again."],
  ACCOUNT_TEMPORARILY_LOCKED: ["too_many", "Too many wrong codes. Try again in 15 minutes."],
  TOTP_ALREADY_ENABLED: ["wrong_code", "Two-factor authentication is already on."],
  TOTP_NOT_ENABLED: ["wrong_code", "Two-factor authentication is off."],
  TWO_FACTOR_NOT_ENABLED: ["wrong_code", "Two-factor authentication is off."],
  BACKUP_CODES_NOT_ENABLED: ["wrong_code", "Two-factor authentication is off."],
  TOKEN_EXPIRED: ["bad_link", "This link has expired. Request a new one."],
  USER_NOT_FOUND: ["bad_link", "This link has been used or has expired. Request a new one."],
};

interface LibraryBody {
  code?: string;
  message?: string;
  user?: CallScope["user"] | null;
  /** The password is right, and a code must follow. */
  twoFactorRedirect?: boolean;
  totpURI?: string;
  backupCodes?: string[];
}

/** @throws Error for an answer that no form can cause: a bug of ours */
async function toAnswer(response: Response, scope: CallScope): Promise<LibraryAnswer> {
  const cookies = new Headers(response.headers.getSetCookie().map((cookie) => ["set-cookie", cookie]));
  const body: LibraryBody | null = await response.json();
  const shown = { uri: body?.totpURI, codes: body?.backupCodes ?? [] };
  if (response.ok) {
    const needsCode = body?.twoFactorRedirect === true;
    const hasSession = !needsCode && cookies.has("set-cookie");
    const user = needsCode ? null : (scope.user ?? body?.user ?? null);
    return { answer: { ok: true, cookies, hasSession, needsCode }, user, shown };
  }
  const [reason, message] = troubles[body?.code ?? response.status] ?? [];
  if (reason && message) return { answer: { ok: false, reason, message }, user: null, shown };
  throw new Error(`better-auth answered ${response.status} ${body?.code}: ${body?.message}`);
}
