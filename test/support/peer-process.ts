/**
 * Finds the process at the other end of a connection on this machine. Linux only; on other systems it finds none.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * @param nearPort the port of the wanted process
 * @param farPort the port that it has connected to
 * @param pids the candidates
 */
export function peerProcess(nearPort: number, farPort: number, pids: Iterable<number>): number | undefined {
  const inode = inodeOf(nearPort, farPort);
  if (inode === undefined) return undefined;
  for (const pid of pids) if (holds(pid, `socket:[${inode}]`)) return pid;
  return undefined;
}

/** The process itself, its children and theirs. */
export function processTree(pid: number): number[] {
  const threads = (() => {
    try {
      return readdirSync(`/proc/${pid}/task`);
    } catch {
      // It has ended.
      return [];
    }
  })();
  const children = threads.flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processTree)];
}

function inodeOf(nearPort: number, farPort: number): string | undefined {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of read(table).split("\n")) {
      const columns = line.trim().split(/\s+/);
      if (columns[1]?.endsWith(`:${hex(nearPort)}`) && columns[2]?.endsWith(`:${hex(farPort)}`))
        return columns[9];
    }
  }
  return undefined;
}

function holds(pid: number, socket: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => {
      try {
        return readlinkSync(`${folder}/${fd}`) === socket;
      } catch {
        return false;
      }
    });
  } catch {
    // It has ended.
    return false;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
