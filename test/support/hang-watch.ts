/**
 * Ends a test run in which nothing happens any more. If the thread of a test file stands still, none of its time-outs
 * applies, and the run would wait forever, without a word on what for.
 *
 * It prints which files have not ended, and what the processes do. HUNG_FILES names a file to which those files are
 * written, a line each: `.ci/run` runs them once more.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule, TestSpecification } from "vitest/node";
import { summarize } from "./totals-reporter";

/** A test and its second try may take five minutes each, and a hook one more. */
const HUNG_MINUTES = 12;

export default class HangWatch implements Reporter {
  readonly #minutes: number;
  /** Paths of the files that have not ended. */
  readonly #left = new Set<string>();
  readonly #ended: TestModule[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param options.minutes without any news, after which a run has hung */
  constructor({ minutes = HUNG_MINUTES }: { minutes?: number } = {}) {
    this.#minutes = minutes;
  }

  onTestRunStart(files: readonly TestSpecification[]): void {
    for (const { moduleId } of files) this.#left.add(moduleId);
    this.#wait();
  }

  onTestCaseResult(): void {
    this.#wait();
  }

  onTestModuleEnd(module: TestModule): void {
    this.#left.delete(module.moduleId);
    this.#ended.push(module);
    this.#wait();
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), this.#minutes * 60_000);
  }

  #end(): void {
    const hung = [...this.#left].map((path) => relative(process.cwd(), path));
    console.error(`nothing has happened for ${this.#minutes} minutes`);
    console.error(output("ps", "-e", "--forest", "-o", "pid,stat,etimes,time,wchan:20,args"));
    console.error(output("ps", "-L", "-p", `${process.pid}`, "-o", "tid,stat,time,wchan:20,comm"));
    const notes = hung.map((file) => `did not end: ${file}`);
    summarize(this.#ended, 0, notes);
    if (process.env.HUNG_FILES)
      writeFileSync(process.env.HUNG_FILES, hung.map((file) => `${file}\n`).join(""));
    // An ordinary end would wait for the threads.
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
    // It has ended.
  }
}
