/** Worker, proxy and console as one process: `bun apps/main.ts all`. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { runningVersions } from "../../../core/control/fleet";
import { version } from "../../../package.json" with { type: "json" };
import { freshDatabase, type TestDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";

const ROLES = ["worker", "proxy", "console"];

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

function all(env: Record<string, string> = {}): Program {
  return startProgram("apps/main.ts", ["all"], {
    DATABASE_URL: database.url,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
    ...{ WORKER_PORT: "0", PROXY_PORT: "0", CONSOLE_PORT: "0", LOG_LEVEL: "info", HOST: "127.0.0.1" },
    ...env,
  });
}

/** The address that a role says it listens on. */
function addressOf(program: Program, role: string): string {
  const line = program
    .output()
    .split("\n")
    .find((one) => one.includes(`"${role} listening"`));
  return `http://127.0.0.1:${JSON.parse(line!).port}`;
}

test("each role is healthy and ready on its own port, and serves its own metrics", async () => {
  await using program = all();
  await program.says('"msg":"started"');
  for (const role of ROLES) {
    const address = addressOf(program, role);
    for (const path of ["/healthz", "/readyz"])
      expect((await fetch(address + path)).status, `${role} ${path}`).toBe(200);
    const metrics = await (await fetch(`${address}/metrics`)).text();
    expect(new Set(metrics.match(/(?<=role=")\w+/g)), role).toEqual(new Set([role]));
  }
  const report = () => runningVersions(database.sql);
  await until(async () => (await report()).length === ROLES.length, { what: "a report of each role" });
  expect(await report()).toEqual(ROLES.map((role) => ({ role, version, processes: 1 })));
  program.kill("SIGTERM");
  expect(await program.exited).toBe(0);
  expect(await report()).toEqual([]);
});

test("METRICS_PORT serves the metrics of all roles, each described once", async () => {
  await using program = all({ METRICS_PORT: "0" });
  await program.says('"msg":"started"');
  const metrics = await (await fetch(`${addressOf(program, "metrics")}/metrics`)).text();
  for (const role of ROLES) expect(metrics).toContain(`process_start_time_seconds{role="${role}"}`);
  expect(metrics.match(/^# TYPE process_start_time_seconds /gm)).toHaveLength(1);
  expect((await fetch(`${addressOf(program, "worker")}/metrics`)).status).toBe(404);
});

test("at SIGTERM, the roles stop accepting at once, requests under way get their answers, and the process ends", async () => {
  const answer = Promise.withResolvers<void>();
  let hasAsked = false;
  using upstream = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    async fetch() {
      hasAsked = true;
      await answer.promise;
      return Response.json({ records: [] });
    },
  });
  await using program = all({ UPSTREAMS: `api.airtable.com=http://127.0.0.1:${upstream.port}` });
  await program.says('"msg":"started"');
  const headers = { authorization: "Bearer patA.b" };
  const asked = fetch(`${addressOf(program, "proxy")}/api.airtable.com/v0/appOne/Tasks`, { headers });
  await until(() => hasAsked, { what: "the request is under way" });

  program.kill("SIGTERM");
  for (const role of ["worker", "console"]) {
    const refuses = () =>
      fetch(`${addressOf(program, role)}/healthz`).then(
        () => false,
        () => true,
      );
    await until(refuses, { what: `the ${role} accepts no more connections` });
  }
  answer.resolve();
  const answered = await asked;
  expect([answered.status, await answered.json()]).toEqual([200, { records: [] }]);
  expect(await program.exited).toBe(0);
  expect(program.output()).toContain('"msg":"stopped"');
});

test("--help lists the roles; another word is an error that lists them, too", async () => {
  await using help = startProgram("apps/main.ts", ["--help"]);
  expect(await help.exited).toBe(0);
  await until(() => help.output().includes("healthy"), { what: "the usage" });
  for (const role of ["all", ...ROLES, "operator"])
    expect(help.output()).toMatch(new RegExp(`^  ${role} `, "m"));
  // A word of every object, too.
  for (const word of ["wroker", "constructor"]) {
    await using wrong = startProgram("apps/main.ts", [word]);
    expect(await wrong.exited).toBe(2);
    await until(() => wrong.errors().includes("healthy"), { what: "the usage" });
    expect(wrong.errors()).toContain(`"${word}" is not a role`);
  }
});
