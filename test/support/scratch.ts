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

/** Creates a folder that any user may enter: as root, Postgres runs under another user. */
export function scratchFolder(name: string): string {
  const folder = mkdtempSync(join(hasRoomInMemory() ? MEMORY : tmpdir(), `basetide-${name}-`));
  chmodSync(folder, 0o755);
  return folder;
}

function hasRoomInMemory(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, process.availableMemory()) >= ROOM;
  } catch {
    return false;
  }
}
