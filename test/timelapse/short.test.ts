/**
 * The short form: three days, of which the second has the change to summer time, and the third begins a month. `bun run
 * timelapse` is the long form, with sixty.
 */
import { expect, test } from "vitest";
import { slowness } from "../support/machine-speed";
import { startProgram } from "../support/program";
import { fakeTimeLibrary } from "./harness/clock";

const WORDS = ["--days", "3", "--steps", "1", "--from", "2030-03-30"];

test.skipIf(!fakeTimeLibrary)(
  "I1-I7 hold over days, what expires does, nothing needs a person, and no table grows without a bound",
  { timeout: 240_000 * slowness() },
  async () => {
    await using run = startProgram("test/timelapse/main.ts", WORDS);
    const code = await run.exited;
    expect(
      run
        .output()
        .split("\n")
        .filter((line) => line.includes("WRONG")),
    ).toEqual([]);
    expect(run.errors()).toBe("");
    expect(run.output()).toContain("nothing went wrong");
    expect(code).toBe(0);
  },
);
