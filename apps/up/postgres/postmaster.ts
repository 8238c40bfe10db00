/**
 * Runs one Postgres server over one data folder: starts it so that it never outlives this process, watches it and stops
 * it. Also reads `postmaster.pid` of a server that another process started.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BasetideError } from "../../../core/errors";
import type { Logger } from "../../../core/log";
import type { RunAs } from "./postgres-user";

const POLL_MS = 10;
/** The longest start: after a crash, the server first replays up to `max_wal_size` of its log. */
const START_MS = 300_000;
/** Fast shutdown ends with a checkpoint. */
const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 10_000;
/** Lines of the server's log that are stored for an error message. */
const LAST_WORDS = 6;

/** The server's environment: untranslated messages, and nothing secret. */
export const serverEnv = { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/**
 * How a server learns that this process died, SIGKILL included: `setpriv` has the kernel send it SIGINT; elsewhere a
 * shell waits for the end of a pipe that only this process holds.
 */
export type Keeper = "setpriv" | "shell";

const SHELL_KEEPER =
  'exec 3<&0; "$@" 3<&- & server=$!; (cat <&3; kill -INT $server) >/dev/null 2>&1 & wait $server';

interface PidFile {
  pid: number;
  port: number;
  /** The server accepts connections. */
  isReady: boolean;
  text: string;
}

export interface Postmaster {
  /** Resolves with the last lines of the server's log. */
  exited: Promise<string>;
  /** Shuts down, fast at first, then harder; resolves when the process has ended. */
  stop(): Promise<void>;
}

/** Reads `postmaster.pid`. Returns undefined if it does not exist or is only half written. */
export function readPidFile(dataDir: string): PidFile | undefined {
  let text: string;
  try {
    text = readFileSync(join(dataDir, "postmaster.pid"), "utf8");
  } catch {
    return undefined;
  }
  // Lines: pid, data folder, start, port, socket folder, address, shared memory key, status.
  const lines = text.split("\n");
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), isReady: lines[7]?.trim() === "ready", text };
}

/** Returns whether `pid` is a Postgres over `dataDir` (its real path). */
export function isServerOf(dataDir: string, pid: number): boolean {
  const words = commandOf(pid).split(/[\0\s]/);
  return (words[0]?.endsWith("postgres") ?? false) && words.includes(dataDir);
}

/**
 * Stops a server over `dataDir` whose owner is gone, and removes a `postmaster.pid` whose pid now belongs to another
 * program (Postgres would take that program for a server). The caller must hold the folder's lock.
 */
export async function stopOrphan(dataDir: string, log: Logger): Promise<void> {
  const file = readPidFile(dataDir);
  if (!file || !isAlive(file.pid)) return;
  if (!isServerOf(dataDir, file.pid)) {
    log.info({ pid: file.pid }, "stale postmaster.pid removed");
    rmSync(join(dataDir, "postmaster.pid"), { force: true });
    return;
  }
  log.info({ pid: file.pid }, "stopping a Postgres server of an earlier run");
  await stopPid(file.pid, () => isServerOf(dataDir, file.pid));
  // A killed server leaves its file, and Postgres takes a process that no parent has reaped yet for a running one.
  if (readPidFile(dataDir)?.pid === file.pid && !isServerOf(dataDir, file.pid))
    rmSync(join(dataDir, "postmaster.pid"), { force: true });
}

/**
 * Starts the server and waits until it accepts connections.
 *
 * @throws BasetideError `postgres_failed` with the last lines of its log, if it ends first
 */
export async function startPostmaster(options: {
  command: string[];
  dataDir: string;
  user: RunAs | undefined;
  keeper?: Keeper | undefined;
  log: Logger;
}): Promise<Postmaster> {
  const { dataDir, log } = options;
  const before = readPidFile(dataDir)?.text;
  const keeper = options.keeper ?? (Bun.which("setpriv") ? "setpriv" : "shell");
  const child = Bun.spawn(
    keeper === "setpriv"
      ? ["setpriv", "--pdeathsig=INT", "--", ...options.command]
      : ["sh", "-c", SHELL_KEEPER, "sh", ...options.command],
    {
      cwd: "/",
      env: serverEnv,
      // In a session of its own: Ctrl-C in our terminal reaches only us, and the database stops last.
      detached: true,
      stdin: keeper === "shell" ? "pipe" : "ignore",
      stdout: "ignore",
      stderr: "pipe",
      ...options.user,
    },
  );
  const words = followLog(child.stderr, log);
  const exited = child.exited.then(() => words.last());
  const ready = (file: PidFile | undefined) => file?.isReady && file.text !== before;
  const deadline = Date.now() + START_MS;
  while (!ready(readPidFile(dataDir))) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      child.kill("SIGKILL");
      throw new BasetideError("postgres_failed", `Embedded Postgres did not start: ${await exited}`);
    }
    await Bun.sleep(POLL_MS);
  }
  const { pid } = readPidFile(dataDir)!;
  return {
    exited,
    async stop() {
      await stopPid(pid, () => child.exitCode === null && child.signalCode === null);
      if (typeof child.stdin === "object") await child.stdin.end();
      await exited;
    },
  };
}

/** SIGINT (fast), then SIGQUIT (immediate), then SIGKILL, while `isRunning`. */
async function stopPid(pid: number, isRunning: () => boolean): Promise<void> {
  const ways: [NodeJS.Signals, number][] = [
    ["SIGINT", FAST_STOP_MS],
    ["SIGQUIT", IMMEDIATE_STOP_MS],
    ["SIGKILL", IMMEDIATE_STOP_MS],
  ];
  for (const [signal, patienceMs] of ways) {
    if (!isRunning()) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (!hasCode(error, "ESRCH")) throw error;
    }
    const deadline = Date.now() + patienceMs;
    while (isRunning() && Date.now() < deadline) await Bun.sleep(POLL_MS);
  }
}

/** Sends the server's lines to the log and stores the last of them. */
function followLog(stream: ReadableStream<Uint8Array>, log: Logger): { last(): Promise<string> } {
  const kept: string[] = [];
  const decoder = new TextDecoder();
  async function follow(): Promise<void> {
    let rest = "";
    for await (const chunk of stream) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        kept.push(line.replace(/^\S+ \S+ \S+ \[\d+\] /, ""));
        if (kept.length > LAST_WORDS) kept.shift();
        if (/PANIC:|terminated by signal/.test(line)) log.error({ line }, "postgres");
        else log.debug({ line }, "postgres");
      }
    }
  }
  const done = follow();
  return {
    async last() {
      await done;
      return kept.join(" | ") || "it printed nothing";
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, "EPERM");
  }
}

/** Returns the command line of `pid`, or "" if there is no such process. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    if (process.platform === "linux") return "";
    return Bun.spawnSync(["ps", "-o", "command=", "-p", String(pid)], { stderr: "ignore" }).stdout.toString();
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
