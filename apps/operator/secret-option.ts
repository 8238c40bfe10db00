/** Secrets given to a command: on standard input, since what stands on the command line everybody sees in `ps`. */
import { type Command, Option } from "commander";
import { BasetideError } from "../../core/errors";

/** Adds `--<name> <value>` and `--<name>-stdin`; one of them must be given. */
export function addSecretOption(command: Command, name: string, description: string): Command {
  return command
    .addOption(new Option(`--${name}-stdin`, `${description}; read from standard input`))
    .addOption(
      new Option(
        `--${name} <${name}>`,
        `the same on the command line, where every user of this machine sees it in ps`,
      ).conflicts(`${name}Stdin`),
    );
}

/**
 * The secret that was given in either way; of standard input without the line break at its end.
 *
 * @throws BasetideError `invalid_request`
 */
export async function readSecret(name: string, options: Record<string, unknown>): Promise<string> {
  const given = options[name];
  if (typeof given === "string") return given;
  const read = options[`${name}Stdin`] === true ? (await Bun.stdin.text()).replace(/\r?\n$/, "") : "";
  if (read !== "") return read;
  throw new BasetideError(
    "invalid_request",
    `No ${name}: give --${name}-stdin and the ${name} on standard input, or --${name}, which shows it in ps`,
  );
}
