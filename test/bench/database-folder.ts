/**
 * The folder for the databases of benches that clone bases.
 *
 * A database takes about 10 MB. On a file system with reflinks (XFS, btrfs), Postgres 18 shares the blocks of the
 * pattern instead: ten thousand databases then need 20 GB instead of 100, and minutes instead of hours. For instance:
 *
 *     truncate -s 60G xfs.img && mkfs.xfs -m reflink=1 xfs.img && mount -o loop,noatime xfs.img /mnt/bench
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "../support/scratch";

export interface DatabaseFolder extends Disposable {
  path: string;
  /** Postgres' `file_copy_method`: whether files in the folder can share their blocks. */
  copyMethod: "clone" | "copy";
}

/**
 * @param parent a scratch folder unless given
 * @param room bytes that the databases need if they share no blocks
 */
export function databaseFolder(name: string, parent: string | undefined, room: number): DatabaseFolder {
  const path = parent ? mkdtempSync(join(parent, `${name}-`)) : scratchFolder(name, room);
  // As root, Postgres runs under another user.
  chmodSync(path, 0o755);
  const copyMethod = canClone(path) ? "clone" : "copy";
  console.log(`databases are in ${path} (file_copy_method: ${copyMethod})`);
  return { path, copyMethod, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

function canClone(folder: string): boolean {
  const [one, other] = [join(folder, "one"), join(folder, "other")];
  writeFileSync(one, "x".repeat(8192));
  const { success } = Bun.spawnSync(["cp", "--reflink=always", one, other], { stderr: "ignore" });
  for (const file of [one, other]) rmSync(file, { force: true });
  return success;
}
