/**
 * Ends a test run that has hung. The time-outs of tests and hooks need the thread of their file: while it is blocked, for
 * example by a loop or a synchronous call, none of them fires, and the run would never end.
 *
 * Prints which files have not ended, the processes, the threads of this one, and the summary.
 */
import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import type { Reporter, SerializedError, TestModule, TestSpecification, Vitest } from "vitest/node";
import { summarize } from "./totals-reporter";

/**
 * A run without any result, or output of a test, for this long has hung: a test and its second try may take five minutes
 * each, and a long form of one (`bun run kills`) hours, of which it prints how far it is.
 */
const HUNG_MINUTES = 12;

export default class HangWatchdog implements Reporter {
  readonly #minutes: number;
  /** Paths of the files that have not ended. */
  readonly #unfinished = new Set<string>();
  readonly #finished: TestModule[] = [];
  #vitest: Vitest | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param options.minutes without any result, after which a run has hung */
  constructor({ minutes = HUNG_MINUTES }: { minutes?: number } = {}) {
    this.#minutes = minutes;
  }

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunStart(files: readonly TestSpecification[]): void {
    for (const { moduleId } of files) this.#unfinished.add(moduleId);
    this.#restart();
  }

  onTestCaseResult(): void {
    this.#restart();
  }

  onUserConsoleLog(): void {
    this.#restart();
  }

  onTestModuleEnd(module: TestModule): void {
    this.#unfinished.delete(module.moduleId);
    this.#finished.push(module);
    this.#restart();
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }

  #restart(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#endRun(), this.#minutes * 60_000);
  }

  #endRun(): void {
    const hung = [...this.#unfinished].map((path) => relative(process.cwd(), path));
    console.error(`the test run has hung: no result for ${this.#minutes} minutes`);
    console.error(output("ps", "-e", "--forest", "-o", "pid,stat,etimes,time,wchan:20,args"));
    console.error(output("ps", "-L", "-p", `${process.pid}`, "-o", "tid,stat,time,wchan:20,comm"));
    const errors = (this.#vitest?.state.getUnhandledErrors() ?? []) as SerializedError[];
    summarize(this.#finished, errors, hung);
    // A regular exit would wait for the blocked threads.
    for (const pid of descendantsOf(process.pid)) kill(pid);
    kill(process.pid);
  }
}

function output(program: string, ...words: string[]): string {
  return spawnSync(program, words).stdout?.toString() ?? `${program} is not installed`;
}

function descendantsOf(pid: number): number[] {
  const children = output("pgrep", "-P", `${pid}`).trim().split(/\s+/).map(Number).filter(Boolean);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}
