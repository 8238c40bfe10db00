/**
 * The simulated clock of a run: libfaketime (Debian's package `faketime`), preloaded into every process, Postgres included.
 *
 * All of them read the offset from one file at each look at the clock, so that time moves for all of them in the same
 * moment. Their monotonic clocks move, too: timers, ages and leases pass as they do on a machine that was suspended.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serverEnv } from "../../../apps/up/postgres/postmaster";
import { scratchFolder } from "../../support/scratch";

const FILE = "FAKETIME_TIMESTAMP_FILE";
/**
 * The one for programs with threads. In the other one, threads that look at the clock at the same time share a buffer: one of them
 * sees the machine's own time now and then, and a timer that it sets then has expired years ago.
 */
const LIBRARIES = ["x86_64", "aarch64"].map(
  (machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`,
);

/** The library, if it is installed. */
export const fakeTimeLibrary = LIBRARIES.find((path) => existsSync(path));

/** Whether this process's clock is simulated. */
export const isSimulated = process.env[FILE] !== undefined;

/** Runs `script` with a simulated clock that starts at `from`. @returns its exit code */
export async function runSimulated(script: string, words: string[], from: Date): Promise<number> {
  if (!fakeTimeLibrary) throw new Error("libfaketime is not installed: apt-get install faketime");
  const folder = scratchFolder("clock");
  const file = join(folder, "offset");
  try {
    setOffset(file, from.getTime() - Date.now());
    const child = Bun.spawn([process.execPath, script, ...words], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, [FILE]: file, FAKETIME_NO_CACHE: "1", LD_PRELOAD: fakeTimeLibrary },
    });
    for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => child.kill(name));
    return await child.exited;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export class Clock {
  readonly #file = process.env[FILE]!;
  #offsetMs = Number(readFileSync(process.env[FILE]!, "utf8")) * 1000;

  constructor() {
    // Postgres is started with an environment of its own.
    const { LD_PRELOAD, FAKETIME_NO_CACHE } = process.env;
    Object.assign(serverEnv, { LD_PRELOAD, FAKETIME_NO_CACHE, [FILE]: this.#file });
  }

  /** Real time since the start of the machine, as far as this process sees it, ms. */
  get realMs(): number {
    return performance.now() - this.#offsetMs;
  }

  /** Moves every clock to `to`, as if the machine had been suspended until then. */
  jumpTo(to: Date): void {
    const ms = to.getTime() - Date.now();
    if (ms > 0) this.advance(ms);
  }

  /** Moves every clock by so much. */
  advance(ms: number): void {
    this.#offsetMs += ms;
    setOffset(this.#file, this.#offsetMs);
  }
}

/** In one step: a process may read it at any moment. */
function setOffset(file: string, ms: number): void {
  writeFileSync(`${file}.new`, `${ms < 0 ? "" : "+"}${(ms / 1000).toFixed(3)}\n`);
  renameSync(`${file}.new`, file);
}
