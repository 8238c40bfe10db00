/** The operator's command line: `bun run operator <noun> <verb> --json`. */
import { asControlError } from "../../core/postgres";
import { scrub } from "../../core/scrub";
import { printable, printableJson } from "../../core/terminal";
import { operatorProgram } from "./program";

try {
  await operatorProgram().parseAsync();
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
