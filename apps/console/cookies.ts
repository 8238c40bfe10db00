/**
 * Reads and writes cookies of the console, such as the one with the user's color theme. None of them is readable by scripts
 * or sent with other sites' requests.
 */
import { type Theme, themes } from "../../views/frame/theme";

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
 * @param options.path the pages that get it; default: all
 */
export function writeCookie(
  name: string,
  value: string,
  options: { consoleUrl: string; maxAgeS: number; path?: string },
): string {
  const secure = options.consoleUrl.startsWith("https:") ? "; Secure" : "";
  const { maxAgeS, path = "/" } = options;
  return `${name}=${maxAgeS === 0 ? "" : value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
}

/** It is not secret, and any other value than a theme means the system's. */
const THEME = "basetide_theme";
/** The longest time that browsers store a cookie. */
export const LONGEST_LIFE_S = 400 * 24 * 60 * 60;
/** Browsers ignore a cookie that is longer than 4096 bytes with its name and attributes. */
export const MOST_COOKIE = 3500;

export function themeOf(request: Request): Theme {
  return knownTheme(readCookie(request, THEME));
}

/** The header that stores the theme. */
export function themeCookie(theme: string, consoleUrl: string): string {
  const known = knownTheme(theme);
  return writeCookie(THEME, known, { consoleUrl, maxAgeS: known === "system" ? 0 : LONGEST_LIFE_S });
}

function knownTheme(text: string | undefined): Theme {
  return themes.find((theme) => theme === text) ?? "system";
}
