/**
 * A lock over a folder's use that dies with its process.
 *
 * The kernel drops it at any kind of death, so there is no stale lock to find out about. It is the file lock that
 * SQLite takes for an exclusive transaction: the one such lock that Bun brings along.
 */
import { Database } from "bun:sqlite";

export interface FileLock {
  release(): void;
}

/**
 * Takes the lock at `path` (the file is made if need be), or answers undefined while somebody else holds it,
 * in this process or another.
 *
 * @throws Error of SQLite's where the file cannot be opened
 */
export function takeFileLock(path: string): FileLock | undefined {
  const database = new Database(path, { create: true });
  try {
    database.run("pragma busy_timeout = 0");
    // Nothing is ever written: without this a recent-writes log file would lie beside the lock.
    database.run("pragma journal_mode = memory");
    database.run("begin exclusive");
  } catch (error) {
    database.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
