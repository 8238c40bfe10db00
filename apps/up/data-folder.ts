/** Finds the folder of sample bases: large real ones, which are not part of the repository. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** The default, next to the repository. */
const USUAL = resolve(import.meta.dirname, "../../../shared/data");

/** Returns the folder that BASETIDE_DATA names, or the default; undefined if it does not exist. */
export function findDataFolder(env: Record<string, string | undefined>): string | undefined {
  const folder = resolve(env.BASETIDE_DATA || USUAL);
  return existsSync(folder) ? folder : undefined;
}
