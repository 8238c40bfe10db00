/** `secrets rotate`: encrypts with SECRET_KEY everything that a key of SECRET_KEY_PREVIOUS has encrypted. */
import type { Command } from "commander";
import { rotateEncryption } from "../../core/control/setup";
import { formatFacts, printResult } from "../../core/terminal";
import { withContext } from "./context";

export function addSecretsCommands(program: Command): void {
  program
    .command("secrets")
    .description("encrypted values in the control plane")
    .command("rotate")
    .description("encrypt all values of SECRET_KEY_PREVIOUS again with SECRET_KEY; services keep running")
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const done = await withContext(rotateEncryption);
      printResult(
        { ...done },
        options.json,
        (rotation) => `${formatFacts(rotation)}\n\n${advice(rotation.unreadable)}`,
      );
      if (done.unreadable > 0) process.exitCode = 1;
    });
}

function advice(unreadable: number): string {
  if (unreadable > 0)
    return "Add the key that encrypted the unreadable values to SECRET_KEY_PREVIOUS, and run this command again.";
  return "When all processes run with this SECRET_KEY and `doctor` confirms it, remove SECRET_KEY_PREVIOUS.";
}
