/** The operator's command line: `bun run operator <noun> <verb> --json`. */
import { runOperator } from "./program";

await runOperator(process.argv.slice(2));
