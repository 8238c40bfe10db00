/** The repository's own files, for tests about the code itself. */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";

export const repoRoot = resolve(import.meta.dirname, "../..");

/** Not ours, or not committed. */
const SKIPPED = new Set(["node_modules", ".git", ".data", "coverage", "dist", "screenshots"]);

/** Every file under `folder` of the repository, as paths from its root, sorted. */
export function repoFiles(folder = "."): string[] {
  const found: string[] = [];
  const open = [folder === "." ? "" : folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const entry of readdirSync(join(repoRoot, next), { withFileTypes: true })) {
      const path = join(next, entry.name);
      if (SKIPPED.has(entry.name)) continue;
      if (entry.isDirectory()) open.push(path);
      else if (entry.isFile()) found.push(path);
    }
  }
  return found.sort();
}
