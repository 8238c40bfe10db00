/** The operator's command line: `bun run operator <noun> <verb> --json`. */
import { Command } from "commander";
import { asControlError } from "../../core/postgres";
import { scrub } from "../../core/scrub";
import { printable, printableJson } from "../../core/terminal";
import { addAccountCommands } from "./account-commands";
import { addAuditCommands } from "./audit-commands";
import { addBaseCommands } from "./base-commands";
import { addClusterCommands } from "./cluster-commands";
import { addDoctorCommand } from "./doctor-command";
import { addDatabaseCommands, addRequestCommands } from "./request-commands";
import { addSecretsCommands } from "./secrets-commands";
import { addServerCommands } from "./server-commands";

const program = new Command("operator")
  .configureOutput({
    writeOut: (text) => void process.stdout.write(printable(text)),
    writeErr: (text) => void process.stderr.write(printable(text)),
  })
  .description("Operates Basetide. Reads the same environment variables as its processes")
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

try {
  await program.parseAsync();
} catch (error) {
  const known = asControlError(error);
  const { code } = known;
  const message = scrub(known.message);
  const isJson = process.argv.includes("--json");
  console.error(
    isJson ? printableJson(JSON.stringify({ error: { code, message } })) : `error: ${printable(message)}`,
  );
  process.exitCode = 1;
}
