/** The `doctor` command. */
import type { Command } from "commander";
import { withContext } from "./context";
import { examine, type Finding } from "./doctor";
import { print } from "./output";

export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("look for what is wrong, and say what to do; exit code 1 when something is")
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const findings = await withContext(examine);
      print(findings, options.json, (all) => all.map(toLine).join("\n"));
      if (findings.some((finding) => finding.status === "problem")) process.exitCode = 1;
    });
}

function toLine({ check, status, message, remedy }: Finding): string {
  return `${status.padEnd(7)}  ${check}: ${message}${remedy === null ? "" : `\n         → ${remedy}`}`;
}
