/** How a process gets options of the runtime that it must have from its start. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { scratchFolder } from "../support/scratch";
import { repoRoot } from "../support/source-files";

const PROGRAM = `
import { ensureOptions } from ${JSON.stringify(join(repoRoot, "apps/runtime-options"))};
ensureOptions({ OPTION_ONE: "1", OPTION_TWO: "2" });
const { pid, argv, execArgv, env } = process;
console.log(JSON.stringify({ pid, words: argv.slice(2), execArgv, one: env.OPTION_ONE, two: env.OPTION_TWO }));
`;

const folder = scratchFolder("options", 2 ** 12);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ["all", {}, { one: "1", two: "2" }],
  ["the missing one", { OPTION_TWO: "own" }, { one: "1", two: "own" }],
  ["none", { OPTION_ONE: "own", OPTION_TWO: "" }, { one: "own", two: "" }],
])(
  "a process gets %s of its options, and keeps its id, its arguments and what is set",
  async (_, set, options) => {
    const script = join(folder, "program.ts");
    writeFileSync(script, PROGRAM);
    const child = Bun.spawn([process.execPath, "--smol", script, "worker", "a b"], {
      env: { PATH: process.env.PATH, ...set },
      stdout: "pipe",
    });
    const printed = JSON.parse(await new Response(child.stdout).text());
    expect(printed).toEqual({ pid: child.pid, words: ["worker", "a b"], execArgv: ["--smol"], ...options });
  },
);
