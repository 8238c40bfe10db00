/** The console while the control plane's server is stopped by SIGSTOP: connections stay open, and nothing answers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { migrateControl } from "../../../core/control/setup";
import { createLogger } from "../../../core/log";
import { type ConsoleClient, consoleClient } from "../../support/console-client";
import { type TestControl, testControl } from "../../support/control-support";
import { type MortalPostgres, mortalPostgres } from "../../support/mortal-postgres";
import { until } from "../../support/poll";

/** The promise is 5 s on a machine that does nothing else. */
const ANSWERED_MS = 15_000;

let postgres: MortalPostgres;
let control: TestControl;
let running: RunningConsole;
let client: ConsoleClient;
let token: string;

beforeAll(async () => {
  postgres = await mortalPostgres();
  await migrateControl(postgres.url, createLogger("silent", "test"));
  const given = { url: postgres.url, [Symbol.asyncDispose]: async () => {} };
  control = await testControl(undefined, given);
  token = (await control.addAccount("frozen@example.com")).token;
  running = await startConsole(control.ctx, { port: 0 });
  const handle = async (request: Request) => {
    const url = `http://127.0.0.1:${running.port}${new URL(request.url).pathname}`;
    const signal = AbortSignal.timeout(ANSWERED_MS);
    return fetch(new Request(url, request), { redirect: "manual", signal });
  };
  client = consoleClient({ handle });
  await client.post("/sign-in", { email: "frozen@example.com", password: "correct horse" });
}, 120_000);
afterAll(async () => {
  postgres?.thaw();
  await running?.stop();
  await control?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

test("every page answers with a 503 that says what to do, and works again when the server does", async () => {
  expect((await client.get("/bases")).status).toBe(200);
  postgres.freeze();
  try {
    const paths = ["/bases", "/bases/bas_1", "/account", "/sign-in", "/operator"];
    const answers = await Promise.all(paths.map((path) => client.get(path)));
    const asked = answers.filter(({ status }) => status === 503);
    // A page that asks the control plane for nothing is served as usual.
    expect(answers.filter((answer) => !asked.includes(answer) && answer.status !== 200)).toEqual([]);
    expect(asked.length).toBeGreaterThanOrEqual(4);
    for (const { text, headers } of asked) {
      expect(text).toContain("Temporarily unavailable");
      expect(text).toContain("Reload this page in a minute");
      expect(headers.get("retry-after")).toBe("30");
    }
    const api = await client.get("/api/v1/bases", { authorization: `Bearer ${token}`, accept: "*/*" });
    expect([api.status, JSON.parse(api.text).error.code]).toEqual([503, "control_unavailable"]);
    expect((await client.get("/healthz")).status).toBe(200);
  } finally {
    postgres.thaw();
  }
  await until(async () => (await client.get("/bases")).status === 200, {
    what: "the page is back",
    timeoutMs: 60_000,
  });
});
