/**
 * Versions of SQL that each process installs at its start if it finds an older one: `<revision> <hash of the text>`.
 *
 * The revision increases with every released change. While two versions of Basetide run side by side, the older process
 * uses the functions of the newer one, so SQL of one revision must support the calls of the previous revision.
 */
import { createHash } from "node:crypto";

/** Returns the version of `text`; two texts of one revision differ in the hash. */
export function templateVersion(revision: number, text: string): string {
  return `${revision} ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
}

/** Must `installed` be replaced by `version`: is it missing, older, or another text of the same revision? */
export function isTemplateOutdated(installed: string | null | undefined, version: string): boolean {
  return installed !== version && !isNewer(installed, version);
}

/** Is a later revision than that of `version` installed? */
export function isNewer(installed: string | null | undefined, version: string): boolean {
  return revisionOf(installed) > revisionOf(version);
}

/** Revision 1 was a hash alone. */
function revisionOf(version: string | null | undefined): number {
  return Number(version?.match(/^(\d+) /)?.[1] ?? 1);
}
