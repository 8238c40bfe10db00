/** The `doctor` command. */
import type { Command } from "commander";
import type { Context } from "../../core/context";
import { asBasetideError } from "../../core/errors";
import { printableValue } from "../../core/terminal";
import { withContext } from "./context";
import { examine } from "./doctor";
import type { Finding, Mendable } from "./findings";
import { print } from "./output";

export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("look for what is wrong, and say what to do; exit code 1 when something is")
    .option("--fix", "put right what a program can; after a restore of the control plane, all of it", false)
    .option("--json", "print JSON", false)
    .action(async (options: { fix: boolean; json: boolean }) => {
      const findings = await withContext((ctx) => (options.fix ? fix(ctx) : examine(ctx)));
      print(findings.map(told), options.json, (all) => all.map(toLine).join("\n"));
      if (findings.some((finding) => finding.status === "problem")) process.exitCode = 1;
    });
}

/** Mends one after the other, and then looks again: what is left is said with why it could not be mended. */
async function fix(ctx: Context): Promise<Finding[]> {
  const mended: Finding[] = [];
  const failed = new Map<string, string>();
  for (const { mend, ...finding } of await examine(ctx)) {
    if (!mend) continue;
    try {
      await mend();
      mended.push({ ...finding, status: "mended", remedy: null });
    } catch (error) {
      failed.set(finding.message, asBasetideError(error).message);
    }
  }
  const left = (await examine(ctx)).map((finding) => {
    const why = failed.get(finding.message);
    return why === undefined ? finding : { ...finding, remedy: `Could not be mended: ${why}` };
  });
  return [...mended, ...left];
}

function told({ check, status, message, remedy }: Mendable): Finding {
  return { check, status, message, remedy };
}

function toLine({ check, status, message, remedy }: Finding): string {
  const next = remedy === null ? "" : `\n         → ${printableValue(remedy)}`;
  return `${status.padEnd(7)}  ${check}: ${printableValue(message)}${next}`;
}
