/** S15: text from other users moves no cursor of an operator's terminal, and reverses no line. */
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { describeUp } from "../../apps/up/describe";
import { readConfig } from "../../core/config";
import { formatFacts, formatTable, printable, printableJson, printResult } from "../../core/terminal";
import { anyText, fuzz } from "../support/fuzz";

afterEach(() => vi.restoreAllMocks());

/** Any of them except a line break. */
const UNSAFE = /(?!\n)\p{Cc}|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const hostile = fc.oneof(
  anyText,
  fc
    .array(
      fc.oneof(
        fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
        fc.constantFrom("\x1b]0;pwned\x07", "\x9b2J", "\u202e", "\u2066", "\u200f", "\r", "\n", "a", "💡"),
      ),
    )
    .map((parts) => parts.join("")),
);

function printed(work: () => void): string {
  const lines: string[] = [];
  vi.spyOn(console, "log").mockImplementation((line) => void lines.push(line));
  work();
  vi.restoreAllMocks();
  return lines.join("\n");
}

fuzz(
  "no control character except a line break passes, in any form of output",
  500,
  fc.property(hostile, hostile, (name, other) => {
    const rows = [
      { id: "base_1", name, note: other },
      { id: "base_2", name: other, note: null },
    ];
    const tables = printed(() => printResult(rows, false, (all) => formatTable(all, "none")));
    expect(tables.split("\n")).toHaveLength(3);
    const lines = printed(() => printResult(rows[0]!, false, formatFacts));
    expect(lines.split("\n")).toHaveLength(3);
    const json = printed(() => printResult(rows, true, () => ""));
    for (const text of [tables, lines, json, printed(() => printResult(name, false, (own) => own))]) {
      expect(text).not.toMatch(UNSAFE);
    }
    const isWellFormed = (text: string) => Buffer.from(text).toString() === text;
    if (isWellFormed(name + other)) expect(JSON.parse(json)).toEqual(rows);
    const banner = describeUp({
      config: { ...readConfig({}), databaseUrl: "postgres://u:p@localhost/x", host: "127.0.0.1" },
      databaseUrlFile: "x",
      consolePort: 1,
      proxyPort: 2,
      workerPort: 3,
      metricsPort: undefined,
      isEmpty: false,
      sandbox: undefined,
      demo: {
        email: "demo@example.org",
        password: undefined,
        token: "t",
        bases: [{ name, sourceBaseId: "app1", psql: other }],
      },
      failed: new Promise(() => {}),
    });
    expect(banner).not.toMatch(UNSAFE);
  }),
);

test("control characters in a name are shown escaped, and JSON is unchanged", () => {
  expect(printable("Nice\x1b]0;pwned\x07\u202e\n")).toBe("Nice\\u001b]0;pwned\\u0007\\u202e\n");
  expect(JSON.parse(printableJson(JSON.stringify("\x7f\x9b\u202e\n")))).toBe("\x7f\x9b\u202e\n");
});
