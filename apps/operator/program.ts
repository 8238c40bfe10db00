/** All commands of the operator's command line. */
import { Command } from "commander";
import { printable } from "../../core/terminal";
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
