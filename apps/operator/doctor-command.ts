/** The `doctor` command. */
import type { Command } from "commander";
import { isProblem } from "../../core/check-result";
import type { Context } from "../../core/context";
import { asBasetideError } from "../../core/errors";
import { printableValue, printResult } from "../../core/terminal";
import type { DoctorResult } from "./check-results";
import { withContext } from "./context";
import { examine } from "./doctor";

export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description(
      "check the installation and print a remedy for each problem; the exit code is 1 if there is a problem",
    )
    .option(
      "--fix",
      "repair what can be repaired automatically; after a restore of the control plane, this is everything",
      false,
    )
    .option("--json", "print JSON", false)
    .action(async (options: { fix: boolean; json: boolean }) => {
      const results = await withContext((ctx) => (options.fix ? fix(ctx) : examine(ctx)));
      printResult(results.map(toJson), options.json, (all) => all.map(toLine).join("\n"));
      if (results.some(isProblem)) process.exitCode = 1;
    });
}

/** Applies the fixes one by one, and then checks again: a result that remains says why it could not be fixed. */
async function fix(ctx: Context): Promise<DoctorResult[]> {
  const fixed: DoctorResult[] = [];
  const failed = new Map<string, string>();
  for (const result of await examine(ctx)) {
    if (!result.fix) continue;
    try {
      await result.fix();
      fixed.push({ ...result, severity: "ok", remedy: undefined, isFixed: true });
    } catch (error) {
      failed.set(result.message, asBasetideError(error).message);
    }
  }
  const left = (await examine(ctx)).map((result) => {
    const why = failed.get(result.message);
    return why === undefined ? result : { ...result, remedy: `Could not be fixed: ${why}` };
  });
  return [...fixed, ...left];
}

function toJson({ check, severity, isFixed, message, remedy }: DoctorResult) {
  return { check, status: isFixed ? "fixed" : severity, message, remedy: remedy ?? null };
}

function toLine({ check, status, message, remedy }: ReturnType<typeof toJson>): string {
  const next = remedy === null ? "" : `\n         → ${printableValue(remedy)}`;
  return `${status.padEnd(7)}  ${check}: ${printableValue(message)}${next}`;
}
