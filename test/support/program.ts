/** Runs one of our programs as its own process, and reads its output. */
import { until } from "./poll";
import { repoRoot } from "./source-files";

/** The longest start of one of our programs on a busy machine. */
const START_TIMEOUT_MS = 20_000;

export interface Program extends AsyncDisposable {
  pid: number;
  /** Everything that it has written to standard output so far. */
  output(): string;
  errors(): string;
  /** Resolves when its standard output contains `text`. */
  says(text: string | RegExp, timeoutMs?: number): Promise<void>;
  /** Resolves with the exit code; 128 and more is a signal's. */
  exited: Promise<number>;
  kill(signal: NodeJS.Signals): void;
}

/**
 * Starts `bun <script> <words>` in the repository, with `env` over our own environment (undefined unsets a variable).
 * Leaving its scope kills it.
 *
 * @param bunOptions options of Bun itself
 */
export function startProgram(
  script: string,
  words: string[] = [],
  env: Record<string, string | undefined> = {},
  bunOptions: string[] = [],
): Program {
  const child = Bun.spawn([process.execPath, ...bunOptions, script, ...words], {
    cwd: repoRoot,
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = [collect(child.stdout), collect(child.stderr)];
  return {
    pid: child.pid,
    output,
    errors,
    async says(text, timeoutMs = START_TIMEOUT_MS) {
      const hasPrinted = () => (typeof text === "string" ? output().includes(text) : text.test(output()));
      await until(hasPrinted, { what: `${script} prints "${text}"`, timeoutMs });
    },
    exited: child.exited,
    kill: (signal) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function collect(stream: ReadableStream<Uint8Array>): () => string {
  const decoder = new TextDecoder();
  let text = "";
  void (async () => {
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  })();
  return () => text;
}
