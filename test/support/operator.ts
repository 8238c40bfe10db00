/**
 * Runs commands of the operator's command line in this process: the start of a process costs half a second of processor
 * time. Only one at a time, because a command has the environment, the output and the exit code of the process.
 */
import { vi } from "vitest";
import { runOperator } from "../../apps/operator/program";
import type { Config } from "../../core/config";

export interface OperatorAnswer {
  code: number;
  out: string;
  err: string;
}

/** The environment of a command on the control plane of `config`. */
export function operatorEnv({ databaseUrl, secretKey, dataDir }: Config): Record<string, string> {
  return { DATABASE_URL: databaseUrl!, SECRET_KEY: secretKey!, DATA_DIR: dataDir };
}

/** @param env over the environment of this process */
export async function operate(words: string[], env: Record<string, string>): Promise<OperatorAnswer> {
  const [out, err]: [string[], string[]] = [[], []];
  const printed = (lines: string[], end: string) => (text: unknown) => lines.push(`${text}${end}`) > 0;
  const spies = [
    vi.spyOn(console, "log").mockImplementation(printed(out, "\n")),
    vi.spyOn(console, "error").mockImplementation(printed(err, "\n")),
    vi.spyOn(process.stdout, "write").mockImplementation(printed(out, "")),
    vi.spyOn(process.stderr, "write").mockImplementation(printed(err, "")),
  ];
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const { exitCode } = process;
  process.exitCode = 0;
  try {
    await runOperator(words);
    return { code: Number(process.exitCode), out: out.join(""), err: err.join("") };
  } finally {
    process.exitCode = exitCode;
    vi.unstubAllEnvs();
    for (const spy of spies) spy.mockRestore();
  }
}
