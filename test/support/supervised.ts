/**
 * Runs one of our programs as an orchestrator does: restarts it a second after it has ended for any reason.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { signal } from "./mortal-postgres";
import { processTree } from "./peer-process";
import { until } from "./poll";
import { type Program, startProgram } from "./program";
import { repoRoot } from "./source-files";

export type Role = "worker" | "proxy" | "console";

/** An orchestrator's pause before a restart, ms. */
const RESTART_MS = 1000;
/** From SIGTERM to SIGKILL, as orchestrators have it. */
const GRACE_MS = 30_000;
/** Of a program's output in an error, characters. */
const SHOWN_OUTPUT = 2000;
const PORT_VARIABLE: Record<Role, string> = {
  worker: "WORKER_PORT",
  proxy: "PROXY_PORT",
  console: "CONSOLE_PORT",
};

export interface Supervised extends AsyncDisposable {
  name: string;
  role: Role;
  port: number;
  readonly pid: number | undefined;
  /** What it has written to standard output since its last start, characters. */
  readonly logLength: number;
  /** Unexpected ends, as text. */
  readonly faults: string[];
  /** Shifts the time of day that the next start sees, ms. */
  clockShiftMs: number;
  /** Sends SIGKILL. Resolves when the process has ended, so that nothing later signals what is already dying. */
  kill(): Promise<void>;
  /**
   * Sends SIGTERM, like the rollout of a version, and SIGKILL if that does not end it in time. Resolves with the exit
   * code when the process has ended.
   */
  stop(): Promise<number>;
  freeze(): void;
  thaw(): void;
  isReady(): Promise<boolean>;
  /** Resolves when it is ready. The error has the end of what it wrote. */
  untilReady(timeoutMs: number): Promise<void>;
}

export function supervise(
  name: string,
  role: Role,
  port: number,
  env: Record<string, string>,
  logFile: string | undefined,
): Supervised {
  let program: Program | undefined;
  let saidBefore = "";
  let isOver = false;
  /** It was stopped or killed on purpose. */
  let isExpected = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const faults: string[] = [];

  function start(): void {
    isExpected = false;
    const started = startProgram(`apps/${role}/main.ts`, [], {
      ...env,
      [PORT_VARIABLE[role]]: String(port),
      CLOCK_SHIFT_MS: String(self.clockShiftMs),
      BUN_OPTIONS: `--preload ${join(repoRoot, "test/support/shift-clock.ts")}`,
    });
    program = started;
    void started.exited.then((code) => {
      // Without its databases, a start fails with one clear line and is repeated.
      const hasStarted = started.output().includes('"started"');
      const said = `${name} ended with ${code}: ${started.errors().slice(-SHOWN_OUTPUT)}`;
      saidBefore = said;
      if (logFile) appendFileSync(logFile, `== ${said}\n${started.output()}\n`);
      if (!isExpected && !isOver && hasStarted) faults.push(said);
      program = undefined;
      if (!isOver) timer = setTimeout(start, RESTART_MS);
    });
  }

  function signalTree(what: "SIGSTOP" | "SIGCONT"): void {
    for (const pid of program ? processTree(program.pid) : []) signal(pid, what);
  }

  const self: Supervised = {
    name,
    role,
    port,
    faults,
    clockShiftMs: 0,
    get pid() {
      return program?.pid;
    },
    get logLength() {
      return program?.output().length ?? 0;
    },
    async kill() {
      isExpected = true;
      const killed = program;
      killed?.kill("SIGKILL");
      await killed?.exited;
    },
    async stop() {
      isExpected = true;
      const stopping = program;
      stopping?.kill("SIGTERM");
      const impatience = setTimeout(() => {
        faults.push(`${name} did not end within ${GRACE_MS} ms of SIGTERM`);
        stopping?.kill("SIGKILL");
      }, GRACE_MS);
      try {
        return (await stopping?.exited) ?? 0;
      } finally {
        clearTimeout(impatience);
      }
    },
    // Includes its children, like a container that is suspended.
    freeze: () => signalTree("SIGSTOP"),
    thaw: () => signalTree("SIGCONT"),
    async isReady() {
      try {
        const signal = AbortSignal.timeout(2000);
        return (await fetch(`http://127.0.0.1:${port}/readyz`, { signal })).ok;
      } catch {
        return false;
      }
    },
    async untilReady(timeoutMs) {
      try {
        await until(self.isReady, { what: `${name} is ready`, timeoutMs, intervalMs: 50 });
      } catch (error) {
        const says = program?.output().slice(-SHOWN_OUTPUT) ?? "nothing: it does not run";
        throw new Error(`${(error as Error).message}; it says ${says}; before: ${saidBefore}`);
      }
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      program?.kill("SIGKILL");
      await program?.exited;
    },
  };
  start();
  return self;
}
