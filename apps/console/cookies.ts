/** Reads and writes cookies of the console. None of them is readable by scripts or sent with other sites' requests. */

/** Returns the value of the cookie, or undefined. */
export function readCookie(request: Request, name: string): string | undefined {
  for (const part of request.headers.get("cookie")?.split(";") ?? []) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}

/**
 * Returns the `Set-Cookie` header.
 *
 * @param value only characters that cookies allow
 * @param options.maxAgeS 0 deletes the cookie
 */
export function writeCookie(
  name: string,
  value: string,
  options: { consoleUrl: string; maxAgeS: number },
): string {
  const secure = options.consoleUrl.startsWith("https:") ? "; Secure" : "";
  const { maxAgeS } = options;
  return `${name}=${maxAgeS === 0 ? "" : value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
}
