/** The file on disk. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { CliError } from "../failure";
import { annotate } from "./annotate";
import { ContractError, type ParsedContract, parseContract } from "./parse";

/** Reads the file. @throws CliError `file_missing`, ContractError; both are annotated in GitHub's CI */
export function readContract(file: string): ParsedContract {
  if (!existsSync(file))
    throw new CliError("file_missing", `There is no ${file}. Write one: \`basetide pull\``);
  try {
    return parseContract(readFileSync(file, "utf8"), file);
  } catch (error) {
    if (error instanceof ContractError) annotate(file, error.problems);
    throw error;
  }
}

/** Replaces the file as a whole: a run that is interrupted leaves the previous one. */
export function writeContract(file: string, text: string): void {
  const draft = `${file}.${process.pid}.tmp`;
  writeFileSync(draft, text);
  renameSync(draft, file);
}
