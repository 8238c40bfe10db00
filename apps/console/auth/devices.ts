/**
 * Recognizes browsers that have signed in before, by a signed cookie.
 *
 * A cookie is bound to an address and to the password that it signed in with: after a password change, cookies that an
 * intruder has collected are worthless. The cookie grants no access; it only separates the browser's failed attempts
 * from those of strangers. Every sign-in replaces it.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Db } from "../../../core/context";
import { LONGEST_LIFE_S } from "../cookies";

const NAME = "basetide.device";
/** How many accounts one browser may be known to. */
const MAX_TOKENS = 4;
const TOKEN = /^([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

/** @param keys the current key first, then previous ones */
export function createDevices(db: Db, keys: string[], isSecure: boolean) {
  const [current] = keys;
  const name = isSecure ? `__Secure-${NAME}` : NAME;
  const attributes = `Max-Age=${LONGEST_LIFE_S}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  const idOf = (token: string, account: string, now: number): string | null => {
    const [, id, issuedAt, signed] = TOKEN.exec(token) ?? [];
    if (id === undefined || signed === undefined || now - Number(issuedAt) > LONGEST_LIFE_S) return null;
    const isSigned = keys.some((key) => isEqual(signature(key, `${id}.${issuedAt}.${account}`), signed));
    return isSigned ? id : null;
  };
  const find = async (request: Request, email: string) => {
    const tokens = tokensOf(request, name);
    const account = tokens.length === 0 ? null : await accountOf(db, email);
    if (account === null) return null;
    const known = tokens.map((token) => ({ token, id: idOf(token, account, seconds()) }));
    return known.find(({ id }) => id !== null) ?? null;
  };
  return {
    /** Whether a browser says that it is known to some account. */
    isClaimed: (request: Request) => tokensOf(request, name).length > 0,
    /** Returns the browser's id if the account knows it, else null. */
    async find(request: Request, email: string) {
      return (await find(request, email))?.id ?? null;
    },
    /** Returns the cookie that marks the browser as known to the account, or null if there is no such account. */
    async cookie(request: Request, email: string) {
      const account = await accountOf(db, email);
      if (account === null) return null;
      const previous = (await find(request, email))?.token;
      const body = `${randomBytes(16).toString("base64url")}.${seconds()}`;
      const token = `${body}.${signature(current!, `${body}.${account}`)}`;
      const others = tokensOf(request, name).filter((one) => one !== previous);
      return `${name}=${[token, ...others].slice(0, MAX_TOKENS).join("~")}; ${attributes}`;
    },
  };
}

/** Returns what a token is bound to, or null for an address without a password. */
async function accountOf(db: Db, email: string): Promise<string | null> {
  const [row] = await db<{ email: string; password: string }[]>`
    select u.email, l.password from users as u join user_logins as l on l.user_id = u.id
    where u.email = ${email.trim().toLowerCase()} and l.provider_id = 'credential' and l.password is not null`;
  return row ? `${row.email}.${row.password}` : null;
}

function tokensOf(request: Request, name: string): string[] {
  const cookies = request.headers.get("cookie")?.split(/;\s*/) ?? [];
  const value = cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
  return value.split("~", MAX_TOKENS).filter((token) => TOKEN.test(token));
}

function signature(key: string, text: string): string {
  return createHmac("sha256", key).update(text).digest("base64url");
}

function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
