/** All commands of the customers' command line. */
import { Command, CommanderError } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { addAgentCommands } from "./agent-commands";
import { addBasesCommand } from "./base-commands";
import { addCompletionCommand } from "./completion";
import { addContractCommands } from "./contract/commands";
import { CliError, EXIT, failureText } from "./failure";
import { addLogCommands } from "./log-commands";
import { addLoginCommands } from "./login-commands";
import { addMcpCommand } from "./mcp-command";
import { addProposalCommands } from "./proposal-commands";
import { addSqlCommands } from "./sql-commands";
import { addSqlUserCommands } from "./sql-user-commands";
import { addTypesCommand } from "./types-command";

function cliProgram(): Command {
  const program = new Command("basetide")
    .description("Manages the bases of an account through the management API")
    .version(version, "-V, --version", "print the version")
    .enablePositionalOptions()
    .showHelpAfterError("(--help lists the commands and options)")
    .showSuggestionAfterError();
  addLoginCommands(program);
  addBasesCommand(program);
  addSqlCommands(program);
  addSqlUserCommands(program);
  addLogCommands(program);
  addAgentCommands(program);
  addProposalCommands(program);
  addMcpCommand(program);
  addTypesCommand(program);
  addContractCommands(program);
  addCompletionCommand(program);
  for (const command of [program, ...allOf(program)]) command.exitOverride();
  return program;
}

/** Runs one command. It sets the exit code, and throws nothing. */
export async function runCli(words: string[]): Promise<void> {
  try {
    await cliProgram().parseAsync(words, { from: "user" });
  } catch (error) {
    // Commander has printed its own errors, and help is not one.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT.error;
    else {
      console.error(failureText(error, words.includes("--json")));
      process.exitCode = error instanceof CliError && error.code === "cancelled" ? 130 : EXIT.error;
    }
  }
}

function allOf(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allOf(one)]);
}
