/** Options and helpers that commands share. */
import { Command } from "commander";
import { CliError } from "./failure";

export interface Common {
  json?: boolean;
}

/** A command with `--json`. */
export function command(name: string, description: string): Command {
  return new Command(name).description(description).option("--json", "print JSON");
}

/** Reads standard input to its end. @throws CliError `usage` if it is a terminal */
async function readInput(what: string): Promise<string> {
  if (process.stdin.isTTY) throw new CliError("usage", `Send ${what} on standard input.`);
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString("utf8").trim();
}

/** Reads a secret from a terminal without showing it, else from standard input. */
export async function promptSecret(name: string): Promise<string> {
  if (!process.stdin.isTTY) return readInput(name);
  process.stderr.write(`${name}: `);
  const { stdin } = process;
  stdin.setRawMode(true);
  let text = "";
  try {
    for await (const chunk of stdin) {
      for (const char of String(chunk)) {
        if (char === "\r" || char === "\n") return text.trim();
        if (char === "\u0003" || char === "\u0004") throw new CliError("cancelled", "Cancelled.");
        text = char === "\u007f" ? text.slice(0, -1) : text + char;
      }
    }
    return text.trim();
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    process.stderr.write("\n");
  }
}
