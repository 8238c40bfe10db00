/**
 * What the answer to a form leaves for the page that it redirects to: a toast, or a secret that is shown once.
 *
 * It travels in an encrypted cookie, which the page deletes, so a reload shows neither again and no URL contains them.
 * It can be read only in the session that sent the form, and only on the page that it is for.
 */
import type { SecretBox, SecretContext } from "../../core/secrets";
import type { Toast } from "../../views/frame/toasts";
import { MOST_COOKIE, readCookie, writeCookie } from "./cookies";

const NAME = "basetide_flash";
/** A redirect is followed at once. */
const MAX_AGE_S = 60;

export interface Flash {
  toast?: Toast | undefined;
  /** What the next page alone shows, such as a new token. */
  once?: Record<string, string> | undefined;
}

interface KeptFlash extends Flash {
  path: string;
  until: number;
}

export interface FlashContext {
  secrets: Pick<SecretBox, "encrypt" | "decrypt">;
  consoleUrl: string;
  /** Undefined for a visitor. */
  sessionId: string | undefined;
}

/** The header that leaves `flash` for the page at `path`. A flash that no cookie can hold leaves only its toast. */
export function flashCookie(ctx: FlashContext, path: string, flash: Flash): string {
  const { pathname } = new URL(path, "http://own.invalid");
  const encrypted = (content: Flash) => {
    const kept: KeptFlash = { ...content, path: pathname, until: Date.now() + MAX_AGE_S * 1000 };
    return ctx.secrets.encrypt(JSON.stringify(kept), contextOf(ctx));
  };
  const whole = encrypted(flash);
  const value = whole.length <= MOST_COOKIE ? whole : encrypted({ toast: flash.toast });
  return writeCookie(NAME, value, { consoleUrl: ctx.consoleUrl, maxAgeS: MAX_AGE_S });
}

/** Returns what was left for this page, or null. */
export function readFlash(ctx: FlashContext, request: Request): Flash | null {
  const value = readCookie(request, NAME);
  if (!value) return null;
  try {
    const kept = JSON.parse(ctx.secrets.decrypt(value, contextOf(ctx))) as KeptFlash;
    const isForThis = kept.path === new URL(request.url).pathname && kept.until > Date.now();
    return isForThis ? { toast: kept.toast, once: kept.once } : null;
  } catch {
    // Another session's, or of an earlier key.
    return null;
  }
}

/** The header that deletes the flash after it was shown. */
export function noFlashCookie(consoleUrl: string): string {
  return writeCookie(NAME, "", { consoleUrl, maxAgeS: 0 });
}

function contextOf({ sessionId }: FlashContext): SecretContext {
  return `console.flash:${sessionId ?? "visitor"}`;
}
