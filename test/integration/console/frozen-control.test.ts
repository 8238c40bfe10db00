/** The console while the control plane's server is stopped by SIGSTOP: connections stay open, and nothing answers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../../../apps/console/start";
import { migrateControl } from "../../../core/control/setup";
import { createLogger } from "../../../core/log";
import { busyClock } from "../../support/busy-clock";
import { type ConsoleClient, consoleClient } from "../../support/console-client";
import { type TestControl, testControl } from "../../support/control-support";
import { type MortalPostgres, mortalPostgres } from "../../support/mortal-postgres";
import { until } from "../../support/poll";

/** By a clock that stands still while this process has no CPU. */
const ANSWERED_MS = 5000;
/** For a machine on which nothing runs. */
const GIVEN_UP_MS = 60_000;

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
    const signal = AbortSignal.timeout(GIVEN_UP_MS);
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
  const paths = ["/bases", "/bases/bas_1", "/account", "/sign-in", "/operator"];
  using clock = busyClock();
  const timed = async (path: string, headers?: Record<string, string>) => {
    const from = clock.now();
    const answer = await client.get(path, headers);
    return { ...answer, path, tookMs: clock.now() - from };
  };
  // Some requests are under way already when the server stops.
  const earlier = Promise.all(paths.map((path) => timed(path)));
  postgres.freeze();
  try {
    const answers = [
      ...(await Promise.all(paths.map((path) => timed(path)))),
      ...(await earlier).filter(({ status }) => status === 503),
    ];
    expect(answers.filter(({ tookMs }) => tookMs > ANSWERED_MS)).toEqual([]);
    const asked = answers.filter(({ status }) => status === 503);
    // A page that asks the control plane for nothing is served as usual.
    expect(answers.filter((answer) => !asked.includes(answer) && answer.status !== 200)).toEqual([]);
    expect(asked.length).toBeGreaterThanOrEqual(4);
    for (const { text, headers } of asked) {
      expect(text).toContain("Temporarily unavailable");
      expect(text).toContain("Reload this page in a minute");
      expect(headers.get("retry-after")).toBe("30");
    }
    const api = await timed("/api/v1/bases", { authorization: `Bearer ${token}`, accept: "*/*" });
    expect(api.tookMs).toBeLessThanOrEqual(ANSWERED_MS);
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
