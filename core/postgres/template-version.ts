/**
 * Versions of SQL that every process installs at its start where it finds an older one: `<revision> <hash of the text>`.
 *
 * The revision is raised with every released change. While two versions of Basetide run side by side, the older process
 * works with the functions of the newer one, so SQL of one revision must serve the calls of the revision before it.
 */
import { createHash } from "node:crypto";

/** The version of `text`; two texts of one revision differ in the hash. */
export function templateVersion(revision: number, text: string): string {
  return `${revision} ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
}

/** Whether `installed` is to be replaced by `version`: it is missing, older, or another text of the same revision. */
export function isTemplateOutdated(installed: string | null | undefined, version: string): boolean {
  return installed !== version && !isNewer(installed, version);
}

/** Whether a later revision than that of `version` is installed. */
export function isNewer(installed: string | null | undefined, version: string): boolean {
  return revisionOf(installed) > revisionOf(version);
}

/** Revision 1 was a hash alone. */
function revisionOf(version: string | null | undefined): number {
  return Number(version?.match(/^(\d+) /)?.[1] ?? 1);
}
