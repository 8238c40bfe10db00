/**
 * Folders for files that need not outlive a test: in memory if the machine has enough, because on a slow disk each new
 * database takes half a second.
 */
import { accessSync, chmodSync, constants, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Twice the size of all servers of a run, in bytes. */
const ROOM = 2 * 1024 ** 3;

/**
 * Creates a folder that any user may enter: as root, Postgres runs under another user.
 *
 * @param room bytes that must be free for a folder in memory
 */
export function scratchFolder(name: string, room = ROOM): string {
  const folder = mkdtempSync(join(hasInMemory(room) ? MEMORY : tmpdir(), `basetide-${name}-`));
  chmodSync(folder, 0o755);
  return folder;
}

function hasInMemory(room: number): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, process.availableMemory()) >= room;
  } catch {
    return false;
  }
}
