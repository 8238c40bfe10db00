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

test("a process whose resources are never released says so, and ends before its supervisor kills it", async () => {
  await using program = startProgram("test/support/lingering-process.ts", ["hang"], ENVIRONMENT);
  await program.says('"connected"');
  program.kill("SIGTERM");
  await program.says("does not stop", 30_000);
  expect(await program.exited).toBe(1);
}, 60_000);
