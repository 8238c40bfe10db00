import { expect, test } from "vitest";
import { startProgram } from "../../support/program";

const env = {
  DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
  SECRET_KEY: Buffer.alloc(32).toString("base64"),
};

test.each(["start", "lingering", "stuck"])(
  "a process whose start fails ends, whatever that has left behind: %s",
  {
    timeout: 60_000,
  },
  async (way) => {
    await using program = startProgram("test/support/crash.ts", [way, "key", "password", "token"], env);
    expect(await Promise.race([program.exited, Bun.sleep(40_000)])).toBe(1);
    expect(program.errors()).toContain("basetide crash:");
  },
);
