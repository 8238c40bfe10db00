/**
 * Folders for what need not outlive a test: in memory where the machine has room for them, since a slow disk makes each
 * new database cost half a second.
 */
import { accessSync, chmodSync, constants, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Twice of what all servers of a run hold at once, in bytes. */
const ROOM = 2 * 1024 ** 3;

/** Makes a folder that any user may enter: root lends Postgres one of its own. */
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
