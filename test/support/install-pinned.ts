/**
 * Packages that only some tests need, from a folder with a `package.json` and its lock file. They are installed on first
 * use into `node_modules/.cache`, so that the project's `bun install` stays small.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { repoRoot } from "./source-files";

const FILES = ["package.json", "bun.lock"];
/** Longest installation, ms. One that takes longer has stalled; it blocks the thread, so no time-out of a test ends it. */
const INSTALL_MS = 60_000;
/** Longest wait for the registry's answer about a package, ms. */
const REGISTRY_MS = 15_000;
/** Tries of an installation that stalls. */
const TRIES = 3;

/**
 * Installs the pinned packages once per lock file, all or nothing.
 *
 * @param what for the error's message, such as "Postgres"
 * @returns the folder that contains their `node_modules`
 */
export function installPinned(from: string, name: string, what: string): string {
  const folder = folderOf(from, name);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  mkdirSync(partial, { recursive: true });
  try {
    for (const file of FILES) cpSync(join(from, file), join(partial, file));
    const reason = installError(partial, ["install", "--frozen-lockfile", "--ignore-scripts"]);
    if (reason !== undefined) throw new Error(`The ${what} packages could not be installed: ${reason}`);
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    // Another process was faster: its folder is equal to this one.
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Why packages cannot be installed here; undefined if the registry answers. */
export function whyNoRegistry(): string | undefined {
  const asked = Bun.spawnSync([process.execPath, "info", "elysia", "version"], {
    cwd: repoRoot,
    timeout: REGISTRY_MS,
    killSignal: "SIGKILL",
  });
  return asked.success ? undefined : "the registry of packages does not answer";
}

/** Whether `installPinned` has nothing to install. */
export function isInstalled(from: string, name: string): boolean {
  return existsSync(folderOf(from, name));
}

function folderOf(from: string, name: string): string {
  const hash = createHash("sha256")
    .update(readFileSync(join(from, "bun.lock")))
    .digest("hex")
    .slice(0, 12);
  return join(repoRoot, "node_modules", ".cache", `${name}-${hash}`);
}

/** Returns why the packages cannot be installed here, for tests that are skipped then. */
export function missingPackages(...packages: Parameters<typeof installPinned>): string | undefined {
  try {
    installPinned(...packages);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Runs `bun <words>` in the folder, which installs packages, and again if it stalls.
 *
 * @param timeoutMs of each try
 * @returns the reason if it failed
 */
export function installError(folder: string, words: string[], timeoutMs = INSTALL_MS): string | undefined {
  for (let tries = 0; tries < TRIES; tries++) {
    const { success, exitedDueToTimeout, stderr } = Bun.spawnSync([process.execPath, ...words], {
      cwd: folder,
      stdout: "ignore",
      stderr: "pipe",
      timeout: timeoutMs,
      killSignal: "SIGKILL",
    });
    if (success) return undefined;
    if (!exitedDueToTimeout) return stderr.toString();
  }
  return `it did not end within ${timeoutMs} ms, ${TRIES} times`;
}
