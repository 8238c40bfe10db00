/** Runs the operator's `doctor` as its own process. */
import type { Config } from "../../core/config";
import { startProgram } from "./program";

export interface DoctorFinding {
  check: string;
  status: string;
  message: string;
}

export interface DoctorAnswer {
  code: number;
  findings: DoctorFinding[];
}

/** Runs `doctor --json` with further arguments. @throws Error if it writes to standard error */
export async function runDoctor(config: Config, ...words: string[]): Promise<DoctorAnswer> {
  await using program = startProgram("apps/operator/main.ts", ["doctor", "--json", ...words], {
    DATABASE_URL: config.databaseUrl,
    SECRET_KEY: config.secretKey,
    DATA_DIR: config.dataDir,
  });
  const code = await program.exited;
  if (program.errors() !== "") throw new Error(`doctor: ${program.errors()}`);
  return { code, findings: JSON.parse(program.output()) };
}
