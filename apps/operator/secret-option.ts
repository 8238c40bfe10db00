/** Passes secrets to a command on standard input, because every user of the machine sees the command line in `ps`. */
import { type Command, Option } from "commander";
import { invalid } from "../../core/errors";

/** Adds `--<name> <value>` and `--<name>-stdin`; one of them is required. */
export function addSecretOption(command: Command, name: string, description: string): Command {
  return command
    .addOption(new Option(`--${name}-stdin`, `${description}; read from standard input`))
    .addOption(
      new Option(
        `--${name} <${name}>`,
        `the same on the command line, where every user of this machine can see it in ps`,
      ).conflicts(`${name}Stdin`),
    );
}

/**
 * Returns the secret from either option. From standard input, the line break at its end is removed.
 *
 * @throws BasetideError `invalid_request`
 */
export async function readSecret(name: string, options: Record<string, unknown>): Promise<string> {
  const given = options[name];
  if (typeof given === "string") return given;
  const read = options[`${name}Stdin`] === true ? (await Bun.stdin.text()).replace(/\r?\n$/, "") : "";
  if (read !== "") return read;
  throw invalid(
    `No ${name}: give --${name}-stdin and the ${name} on standard input, or --${name}, which shows it in ps`,
  );
}
