/**
 * A lock on a folder that is released when its process dies.
 *
 * The kernel releases it however the process ends, so no stale lock can exist. It is the file lock that SQLite takes
 * for an exclusive transaction: the only such lock that Bun includes.
 */
import { Database } from "bun:sqlite";

export interface FileLock {
  release(): void;
}

/**
 * Takes the lock at `path` (and creates the file if necessary). Returns undefined while another holder has it, in this
 * process or another.
 *
 * @throws Error of SQLite if the file cannot be opened
 */
export function takeFileLock(path: string): FileLock | undefined {
  const database = new Database(path, { create: true });
  try {
    database.run("pragma busy_timeout = 0");
    // Nothing is ever written. Without this, SQLite would leave a journal file next to the lock.
    database.run("pragma journal_mode = memory");
    database.run("begin exclusive");
  } catch (error) {
    database.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
