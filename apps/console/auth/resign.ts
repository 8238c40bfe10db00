/**
 * The signatures of session cookies.
 *
 * Keeps sessions valid when SECRET_KEY is rotated: a cookie that a previous key has signed is signed again with the
 * current one, for the library and for the browser. A request without a signed cookie never reaches the library.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** From the first step of a sign-in to the second. */
export const CODE_SECONDS = 10 * 60;

/** A browser has at most one of each name; the others only cost time. */
const MAX_SESSION_COOKIES = 4;
const COOKIE = /^(?:__Secure-)?basetide\.session_token$/;

/**
 * @param keys the keys that sign sessions: the current key first, then previous ones
 * @param attributes of the cookie that is set
 * @returns a function that corrects the cookie in `headers`, and returns the cookie to set if it had to
 */
export function createResigner(keys: string[], attributes: string) {
  const [current, ...previous] = keys;
  return (headers: Headers): string | null => {
    const cookies = headers.get("cookie")?.split(/;\s*/) ?? [];
    const index = cookies.findIndex((cookie) => COOKIE.test(cookie.slice(0, cookie.indexOf("="))));
    const cookie = cookies[index];
    if (previous.length === 0 || cookie === undefined || current === undefined) return null;
    const name = cookie.slice(0, cookie.indexOf("="));
    const token = tokenSignedBy(cookie.slice(name.length + 1), previous);
    if (token === null) return null;
    cookies[index] = `${name}=${encodeURIComponent(`${token}.${signature(token, current)}`)}`;
    headers.set("cookie", cookies.join("; "));
    return `${cookies[index]}; ${attributes}`;
  };
}

/** Whether a browser claims a session. Nothing verifies it: only for links that differ for visitors and users. */
export function hasSessionCookie({ headers }: Pick<Request, "headers">): boolean {
  const cookies = (headers.get("cookie") ?? "").split(/;\s*/);
  return cookies.some((cookie) => COOKIE.test(cookie.slice(0, cookie.indexOf("="))));
}

/** Removes the session from the cookies. */
export function leaveSession(headers: Headers): void {
  const cookies = (headers.get("cookie") ?? "").split(/;\s*/);
  headers.set(
    "cookie",
    cookies.filter((cookie) => !COOKIE.test(cookie.slice(0, cookie.indexOf("=")))).join("; "),
  );
}

/**
 * @param keys the keys that sign sessions: the current key first, then previous ones
 * @returns whether one of them has signed a session cookie of the request
 */
export function hasSignedSession(keys: string[], { headers }: Pick<Request, "headers">): boolean {
  const values = (headers.get("cookie") ?? "").split(/;\s*/).flatMap((cookie) => {
    const name = cookie.slice(0, cookie.indexOf("="));
    return COOKIE.test(name) ? [cookie.slice(name.length + 1)] : [];
  });
  return values.slice(0, MAX_SESSION_COOKIES).some((value) => tokenSignedBy(value, keys) !== null);
}

/** Verifies as the library signs. Returns null if none of the keys has signed `value`. */
function tokenSignedBy(value: string, keys: string[]): string | null {
  const [, token, signed] = /^([^.]+)\.([A-Za-z0-9+/=]{44})$/.exec(decoded(value)) ?? [];
  if (token === undefined || signed === undefined) return null;
  const isSigned = keys.some((key) =>
    timingSafeEqual(Buffer.from(signature(token, key)), Buffer.from(signed)),
  );
  return isSigned ? token : null;
}

function signature(token: string, key: string): string {
  return createHmac("sha256", key).update(token).digest("base64");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
