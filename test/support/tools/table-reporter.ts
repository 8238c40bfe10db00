/** Prints, after the tests of `bun run tools`, a table: each tool, its version, and whether it does what the docs say. */
import type { Reporter, TestModule } from "vitest/node";
import { NOT_RUN } from "./table.ts";

const MAX_TEXT_LENGTH = 110;

export default class TableReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const found = new Map<string, { name: string; version: string; results: Set<string> }>();
    for (const test of modules.flatMap((module) => [...module.children.allTests()])) {
      const { tools = [], except } = test.meta();
      const outcome = test.result();
      const note = outcome.state === "skipped" ? outcome.note : undefined;
      const result = {
        passed: except ? `as documented, not ${except}` : "works",
        failed: `FAILED: ${test.name}`,
        skipped: `not run: ${note ?? "skipped"}`,
        pending: "FAILED: did not end",
      }[outcome.state];
      for (const { name, version } of tools) {
        const row = found.get(`${name} ${version}`) ?? { name, version, results: new Set() };
        found.set(`${name} ${version}`, row);
        row.results.add(result);
      }
    }
    const run = [...found.values()].map(({ name, version, results }) => [name, version, shown(results)]);
    const left = Object.entries(NOT_RUN).map(([name, reason]) => [name, "", `not run: ${reason}`]);
    const rows = [...run, ...left].toSorted(([a = ""], [b = ""]) => a.localeCompare(b, "en"));
    const widths = [0, 1].map((at) => Math.max(...rows.map((row) => row[at]!.length)));
    const lines = [["tool", "version", "result"], ...rows].map(
      ([name = "", version = "", result = ""]) =>
        `${name.padEnd(widths[0]!)}  ${version.padEnd(widths[1]!)}  ${result}`,
    );
    console.log(`\n${lines.join("\n")}\n`);
  }
}

/** One that has failed matters most; one that works says nothing if others have more to say. */
function shown(results: Set<string>): string {
  const texts = [...results].toSorted(
    (a, b) => Number(b.startsWith("FAILED")) - Number(a.startsWith("FAILED")),
  );
  const told = texts.length > 1 ? texts.filter((text) => text !== "works") : texts;
  return told.map((text) => text.slice(0, MAX_TEXT_LENGTH)).join("; ");
}
