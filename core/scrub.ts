/**
 * Redacts credentials from text: the last line of defense after the checks that should keep them out. Drivers, parsers
 * and sources write messages of their own, and some of them quote their input.
 */

const CENSOR = "[redacted]";

const PATTERNS: [RegExp, string][] = [
  // API keys of the source; our own tokens
  [/\bpat[A-Za-z0-9]{6,}\.[A-Za-z0-9]{8,}|\b(?:bt|bta|btr|whsec)_[A-Za-z0-9_-]{43}/g, CENSOR],
  [/\b(bearer\s+)(?=\S*\d)[A-Za-z0-9._~+/=-]{8,}/gi, `$1${CENSOR}`],
  // The password of a URL; but not the placeholder in a message about the form of a URL
  [/\b([a-z][a-z0-9+.-]*:\/\/[^\s:@/"']*:)(?!password@)[^\s@/"']+@/gi, `$1${CENSOR}@`],
  [/\b((?:postgres(?:ql)?|smtps?):\/\/[^\s:@/"']*:)(?!password@)[^\s@"']+@/gi, `$1${CENSOR}@`],
  [/\b(password\s+')[^']*'/gi, `$1${CENSOR}'`],
  // Fields of logged objects, at any depth
  [/("(?:api_?key|password|secret_?key|authorization|cookie)":")(?:[^"\\]|\\.)*"/gi, `$1${CENSOR}"`],
  [/\bSCRAM-SHA-256\$[^\s"']+/g, CENSOR],
  [/(session_token=)[^;\s"']+/g, `$1${CENSOR}`],
];

/** Shorter secrets could be ordinary words. */
const MIN_SECRET_LENGTH = 8;

/** Returns `text` without anything that looks like a key, a token or a password. */
export function scrub(text: string): string {
  let scrubbed = text;
  for (const [pattern, instead] of PATTERNS) scrubbed = scrubbed.replace(pattern, instead);
  return scrubbed;
}

/** Returns a `scrub` that also redacts these secrets, whatever they look like, including their URL-encoded forms. */
export function scrubberOf(secrets: (string | undefined)[]): (text: string) => string {
  const known = secrets
    .flatMap((secret) => (secret === undefined ? [] : [secret, encodeURIComponent(secret)]))
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  return (text) => known.reduce((scrubbed, secret) => scrubbed.replaceAll(secret, CENSOR), scrub(text));
}

/** Returns the decoded password of a URL; undefined if it has none. */
export function passwordOf(url: string | undefined): string | undefined {
  const password = url === undefined ? "" : (URL.parse(url)?.password ?? "");
  try {
    return decodeURIComponent(password) || undefined;
  } catch {
    return password;
  }
}
