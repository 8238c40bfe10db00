/** The operator's command line explains itself. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { operatorProgram } from "../../apps/operator/program";
import { version } from "../../package.json";

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

/** The words of a command, after the program's name. */
function wordsOf(command: Command): string {
  return command.parent ? `${wordsOf(command.parent)} ${command.name()}`.trim() : "";
}

const commands = allCommands(operatorProgram()).map((command) => [wordsOf(command), command] as const);

test("each command has one line of help, and the program its version", () => {
  expect(operatorProgram().version()).toBe(version);
  expect(commands.length).toBeGreaterThan(20);
  expect(commands.filter(([, command]) => command.description() === "").map(([words]) => words)).toEqual([]);
});

/** Runs the command line as a process. */
async function operate(args: string[], env: Record<string, string>) {
  const child = Bun.spawn([process.execPath, "apps/operator/main.ts", ...args], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdout: "ignore",
    stderr: "pipe",
  });
  const [err] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { err };
}

test("it finds the sandbox, and says what to set if there is no control plane", {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "basetide-operator-"));
  try {
    const env = { DATA_DIR: folder };
    const none = await operate(["base", "list"], env);
    expect(none.err).toContain("DATABASE_URL");
    expect(none.err).toContain("DATA_DIR");
    mkdirSync(join(folder, "sandbox"));
    writeFileSync(join(folder, "sandbox", "database-url"), "postgres://127.0.0.1:1/none\n");
    const found = await operate(["base", "list"], env);
    expect(found.err).toContain(join(folder, "sandbox"));
    expect(found.err).toContain("cannot be reached");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
