/** `secrets rotate`: encrypts with SECRET_KEY everything that a key of SECRET_KEY_PREVIOUS has encrypted. */
import type { Command } from "commander";
import { rotateEncryption } from "../../core/control/setup";
import { withContext } from "./context";
import { facts, print } from "./output";

export function addSecretsCommands(program: Command): void {
  program
    .command("secrets")
    .description("what is encrypted at rest")
    .command("rotate")
    .description("encrypt with SECRET_KEY what SECRET_KEY_PREVIOUS has encrypted, while services run")
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const done = await withContext(rotateEncryption);
      print({ ...done }, options.json, (rotation) => `${facts(rotation)}\n\n${advice(rotation.unreadable)}`);
      if (done.unreadable > 0) process.exitCode = 1;
    });
}

function advice(unreadable: number): string {
  if (unreadable > 0)
    return "Add the key that encrypted the rest to SECRET_KEY_PREVIOUS, and run this again.";
  return "Once every process runs with this SECRET_KEY, and `doctor` says so, SECRET_KEY_PREVIOUS can go.";
}
