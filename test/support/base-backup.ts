/**
 * Copies the data folder of a running Postgres, like pg_basebackup, which the embedded server does not include. The log
 * is not copied: a replication slot keeps it at the primary until the standby has streamed it.
 */
import { chownSync, copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";

/** Folders whose contents belong to one running server; the same list as pg_basebackup's. */
const EMPTIED = [
  "pg_wal",
  "pg_replslot",
  "pg_dynshmem",
  "pg_notify",
  "pg_serial",
  "pg_snapshots",
  "pg_stat_tmp",
  "pg_subtrans",
];
/** Files that a copy must not have. */
const SKIPPED = /^(postmaster\.(pid|opts)|pg_internal\.init|standby\.signal|pgsql_tmp.*|backup_label.*)$/;
/** Copied last: it says where replay of the log starts. */
const CONTROL_FILE = "global/pg_control";

/**
 * Copies the server over `fromDir` to `toDir`, and creates the slot on it.
 *
 * @param primaryUrl a superuser's, directly to the server
 */
export async function baseBackup(
  primaryUrl: string,
  { fromDir, toDir, slot }: { fromDir: string; toDir: string; slot: string },
): Promise<void> {
  const { uid, gid } = statSync(fromDir);
  // A backup belongs to its session, so the pool has one connection.
  const sql = postgres(primaryUrl, { max: 1, onnotice: () => {} });
  try {
    await sql`select pg_create_physical_replication_slot(${slot}, immediately_reserve => true)`;
    await sql`select pg_backup_start(${slot}, fast => true)`;
    copyFolder(fromDir, toDir, { uid, gid });
    copyFile(join(fromDir, CONTROL_FILE), join(toDir, CONTROL_FILE), { uid, gid });
    const [stopped] = await sql<{ labelfile: string }[]>`
      select labelfile from pg_backup_stop(wait_for_archive => false)`;
    for (const [name, text] of [
      ["backup_label", stopped!.labelfile],
      ["standby.signal", ""],
    ] as const) {
      writeFileSync(join(toDir, name), text, { mode: 0o600 });
      chownSync(join(toDir, name), uid, gid);
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
  copyFileSync(`${fromDir}.password`, `${toDir}.password`);
}

interface Owner {
  uid: number;
  gid: number;
}

function copyFolder(from: string, to: string, owner: Owner, path = ""): void {
  const target = join(to, path);
  mkdirSync(target, { mode: 0o700 });
  chownSync(target, owner.uid, owner.gid);
  if (EMPTIED.includes(path)) return;
  for (const entry of readdirSync(join(from, path), { withFileTypes: true })) {
    const inside = join(path, entry.name);
    if (SKIPPED.test(entry.name) || inside === CONTROL_FILE) continue;
    if (entry.isDirectory()) copyFolder(from, to, owner, inside);
    else copyFile(join(from, inside), join(to, inside), owner);
  }
}

/** Copies one file, unless the server has removed it meanwhile; the log tells the standby about that. */
function copyFile(from: string, to: string, { uid, gid }: Owner): void {
  try {
    copyFileSync(from, to);
    chownSync(to, uid, gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
