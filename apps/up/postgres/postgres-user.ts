/**
 * Chooses the user that the embedded Postgres runs as. Postgres refuses to run as root, so root uses a system user; any
 * other user runs it under their own account.
 */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { BasetideError } from "../../../core/errors";

/** Name of the system user that is looked up, and created if absent. */
const SYSTEM_USER = "postgres";

export interface RunAs {
  uid: number;
  gid: number;
}

/**
 * Returns the user to run Postgres as, or undefined for our own. As root: the owner of an existing data folder, else
 * the system user `postgres`.
 *
 * @throws BasetideError `postgres_failed` if we are root and no system user can be created
 */
export function chooseUser(dataDir: string): RunAs | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (existsSync(dataDir)) {
    const { uid, gid } = statSync(dataDir);
    if (uid !== 0) return { uid, gid };
  }
  return findSystemUser() ?? makeSystemUser();
}

/** Returns whether `user` can enter `path`, or, if it does not exist yet, the nearest existing folder above it. */
export function canEnter(user: RunAs | undefined, path: string): boolean {
  if (!existsSync(path)) return canEnter(user, dirname(path));
  return Bun.spawnSync(["sh", "-c", 'cd "$1"', "sh", path], { cwd: "/", stderr: "ignore", ...user }).success;
}

function findSystemUser(): RunAs | undefined {
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Bun.spawnSync(["id", flag, SYSTEM_USER], { stderr: "ignore" }),
  );
  if (!uid?.success || !gid?.success) return undefined;
  return { uid: Number(uid.stdout.toString()), gid: Number(gid.stdout.toString()) };
}

/** Debian and its derivatives have `useradd`; Alpine has BusyBox's `adduser`. */
function makeSystemUser(): RunAs {
  const ways = [
    ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER],
    ["adduser", "-S", "-D", "-H", "-s", "/sbin/nologin", SYSTEM_USER],
  ];
  for (const way of ways.filter(([command]) => Bun.which(command!))) {
    Bun.spawnSync(way, { stdout: "ignore", stderr: "ignore" });
    const made = findSystemUser();
    if (made) return made;
  }
  throw new BasetideError(
    "postgres_failed",
    `Postgres does not run as root, and no system user "${SYSTEM_USER}" could be created. Create one, run as another user, or set DATABASE_URL.`,
  );
}
