/** Packages of Debian's mirror for tests, which are fetched once and never installed. */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { download } from "../../deploy/image/debian";
import { repoRoot } from "./source-files";

const folder = join(repoRoot, "node_modules/.cache/basetide-debian");

/** Why no package of Debian can be used on this machine; undefined if it can. */
export const whyNotDebian =
  Bun.which("apt-get") && Bun.which("dpkg-deb") && process.arch === "x64"
    ? undefined
    : "this machine is not Debian on amd64";

/**
 * @param suite of another release of Debian than the machine's
 * @returns the paths of the `.deb` files by name, or why they cannot be had here
 */
export function debianPackages(names: string[], suite?: string): Record<string, string> | string {
  if (whyNotDebian !== undefined) return whyNotDebian;
  mkdirSync(folder, { recursive: true });
  const paths: Record<string, string> = {};
  for (const name of names) {
    const path = join(folder, `${suite ? `${suite}-` : ""}${name}.deb`);
    if (!existsSync(path)) {
      const fetched = download(name, folder, suite);
      if (fetched === undefined) return `Debian's mirror does not answer, or has no ${name}`;
      renameSync(fetched, path);
    }
    paths[name] = path;
  }
  return paths;
}
