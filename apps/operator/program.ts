/** All commands of the operator's command line. */
import { Command } from "commander";
import { asControlError } from "../../core/postgres";
import { scrub } from "../../core/scrub";
import { printable, printableJson } from "../../core/terminal";
import { version } from "../../package.json" with { type: "json" };
import { addAccountCommands } from "./account-commands";
import { addAuditCommands } from "./audit-commands";
import { addBaseCommands } from "./base-commands";
import { addClusterCommands } from "./cluster-commands";
import { addDoctorCommand } from "./doctor-command";
import { addDatabaseCommands, addRequestCommands } from "./request-commands";
import { addSecretsCommands } from "./secrets-commands";
import { addServerCommands } from "./server-commands";

export function operatorProgram(): Command {
  const program = new Command("operator")
    .configureOutput({
      writeOut: (text) => void process.stdout.write(printable(text)),
      writeErr: (text) => void process.stderr.write(printable(text)),
    })
    .description("Operates Basetide. Reads the same environment variables as its processes")
    .version(version, "-V, --version", "print the version")
    .showHelpAfterError();
  addAccountCommands(program);
  addServerCommands(program);
  addClusterCommands(program);
  addBaseCommands(program);
  addDatabaseCommands(program);
  addRequestCommands(program);
  addAuditCommands(program);
  addSecretsCommands(program);
  addDoctorCommand(program);
  return program;
}

/** Runs one command. Its error becomes one line on standard error and exit code 1. */
export async function runOperator(words: string[]): Promise<void> {
  try {
    await operatorProgram().parseAsync(words, { from: "user" });
  } catch (error) {
    const known = asControlError(error);
    const { code } = known;
    const message = scrub(known.message);
    const isJson = words.includes("--json");
    console.error(
      isJson ? printableJson(JSON.stringify({ error: { code, message } })) : `error: ${printable(message)}`,
    );
    process.exitCode = 1;
  }
}
