/** Where the files of the service are: in a clone of the repository, or in an image, where modules are in bundles. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = rootAbove(import.meta.dirname);

/** @param parts relative to the repository, or to what the image has of it */
export function appPath(...parts: string[]): string {
  return join(ROOT, ...parts);
}

/** A bundle is not at the place of its modules, so the place is found by a file of the root. */
function rootAbove(folder: string): string {
  const above = dirname(folder);
  return above === folder || existsSync(join(folder, "package.json")) ? folder : rootAbove(above);
}
