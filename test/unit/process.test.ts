import { expect, test } from "vitest";
import { until } from "../support/poll";
import { startProgram } from "../support/program";

const ENVIRONMENT = {
  DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
  LOG_LEVEL: "info",
  METRICS_PORT: "0",
  NODE_ENV: "test",
};

test("at SIGTERM, a process ends although a connection is left open", async () => {
  await using program = startProgram("test/support/lingering-process.ts", [], ENVIRONMENT);
  await program.says('"connected"');
  program.kill("SIGTERM");
  let code: number | undefined;
  void program.exited.then((ended) => (code = ended));
  await until(() => code !== undefined, { what: "it has ended", timeoutMs: 20_000 });
  expect([code, program.output().includes('"stopped"')]).toEqual([0, true]);
});

test("a signal that comes again while it is delivered, as from npx and Bun, is the same one", async () => {
  await using program = startProgram("test/support/lingering-process.ts", ["twice"], ENVIRONMENT);
  await program.says('"connected"');
  program.kill("SIGINT");
  expect(await program.exited).toBe(0);
});

test("a further signal ends a process that does not stop", async () => {
  await using program = startProgram("test/support/lingering-process.ts", ["hang"], ENVIRONMENT);
  await program.says('"connected"');
  program.kill("SIGTERM");
  await program.says('"stopping"');
  let isOver = false;
  void program.exited.then(() => (isOver = true));
  // Those of the first second are the same one.
  await until(() => isOver || void program.kill("SIGINT"), { what: "it has ended" });
  expect([await program.exited, program.output().includes("does not stop")]).toEqual([1, false]);
});

test("a process whose resources are never released says so, and ends before its supervisor kills it", async () => {
  await using program = startProgram("test/support/lingering-process.ts", ["hang"], ENVIRONMENT);
  await program.says('"connected"');
  program.kill("SIGTERM");
  await program.says("does not stop", 30_000);
  expect(await program.exited).toBe(1);
}, 60_000);
