/** The sources that an image is made from, as the lines COPY and RUN of the Dockerfile say. */
import { cpSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "../..");

/**
 * Copies the service's files into `folder`.
 *
 * @returns the words after `bun` that install its packages there
 */
export function stageApp(folder: string): string[] {
  const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => /^\w/.test(line));
  for (const [, files = ""] of dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const file of files.split(" ")) {
      const filter = (path: string) => !ignored.includes(relative(root, path));
      cpSync(join(root, file), join(folder, file), { recursive: true, filter });
    }
  }
  const [, install = ""] = /&& bun (install.*?)(?: \\)?$/m.exec(dockerfile) ?? [];
  return install.split(" ");
}
