/** The cookie with the user's color theme. It is not secret, and any other value means the system's theme. */
import { type Theme, themes } from "../../views/frame/theme";
import { readCookie, writeCookie } from "./cookies";

const NAME = "basetide_theme";
const YEAR_S = 365 * 24 * 3600;

export function themeOf(request: Request): Theme {
  return knownTheme(readCookie(request, NAME));
}

/** The header that stores the theme. */
export function themeCookie(theme: string, consoleUrl: string): string {
  const known = knownTheme(theme);
  return writeCookie(NAME, known, { consoleUrl, maxAgeS: known === "system" ? 0 : YEAR_S });
}

function knownTheme(text: string | undefined): Theme {
  return themes.find((theme) => theme === text) ?? "system";
}
