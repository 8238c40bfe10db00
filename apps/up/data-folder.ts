/** The folder of sample bases: large real ones, which are not part of the repository. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** Beside the repository, where nobody says otherwise. */
const USUAL = resolve(import.meta.dirname, "../../../shared/data");

/** The folder BASETIDE_DATA names, or the usual one; undefined where it is absent. */
export function findDataFolder(env: Record<string, string | undefined>): string | undefined {
  const folder = resolve(env.BASETIDE_DATA || USUAL);
  return existsSync(folder) ? folder : undefined;
}
