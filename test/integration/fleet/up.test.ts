import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, expect, test } from "vitest";
import { readPidFile } from "../../../apps/up/postgres/postmaster";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";
import { scratchFolder } from "../../support/scratch";

const dataDir = scratchFolder("up");
afterAll(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

const READY = "Basetide is running.";
/** First start, including the sandbox, on a busy machine. */
const START_MS = 60_000;

function up(words: string[] = [], env: Record<string, string | undefined> = {}): Program {
  return startProgram("apps/up/main.ts", words, {
    DATABASE_URL: undefined,
    DATA_DIR: dataDir,
    CONSOLE_PORT: "0",
    PROXY_PORT: "0",
    SANDBOX_PORT: "0",
    WORKER_PORT: "0",
    LOG_LEVEL: undefined,
    ...env,
  });
}

async function isUp(program: Program): Promise<string> {
  const isReady = () => program.output().includes(READY) && program.output().endsWith("\n");
  const gone = program.exited.then((code) => {
    throw new Error(`up ended with ${code}: ${program.errors()}`);
  });
  await Promise.race([until(isReady, { what: "up says that it is up", timeoutMs: START_MS }), gone]);
  return program.output();
}

test("a first start serves console, proxy and worker, explains how to create an account, and ends on Ctrl-C", async () => {
  await using program = up();
  const output = await isUp(program);
  expect(output).toContain("There is no account yet");
  expect(output).toMatch(/http:\/\/localhost:\d+\/signup/);
  // Nothing follows the box.
  expect(output.trim().split("\n").at(-1)).toMatch(/^└─+┘$/);
  expect(output).not.toContain('{"level"');
  for (const name of ["console", "proxy", "worker"]) {
    const port = new RegExp(`${name} +http://localhost:(\\d+)`).exec(output)?.[1];
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status, name).toBe(200);
  }
  const file = join(dataDir, "database-url");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const sql = postgres(readFileSync(file, "utf8").trim(), { max: 1 });
  expect(await sql`select 1 as one from accounts`).toHaveLength(0);
  // No region is configured: the data is here.
  expect(await sql`select name, location from clusters`).toEqual([
    { name: "default", location: "this machine" },
  ]);
  // The service's sessions: none is a superuser's, and the control plane's role has no rights on the server.
  const roles = await sql`
    select distinct rolname as role, rolsuper or rolcreatedb and rolname = current_user as is_too_much
    from pg_stat_activity join pg_roles on rolname = usename where backend_type = 'client backend'`;
  expect(roles.filter(({ is_too_much }) => is_too_much)).toEqual([]);
  expect(roles.map(({ role }) => role)).toContain("basetide_control");
  await sql.end();
  // As npx and Bun pass on what a terminal has sent already.
  program.kill("SIGINT");
  program.kill("SIGINT");
  expect(await program.exited).toBe(0);
  expect(program.errors()).toBe("");
  expect(program.output().slice(output.length)).toBe("\nStopping…\nStopped.\n");
  expect(readPidFile(join(dataDir, "postgres"))).toBeUndefined();
});

/** All of 127.0.0.0/8 leads to this machine on Linux: the others stand for its address in a network. */
const isAnsweredAt = (host: string, port: string | undefined) =>
  fetch(`http://${host}:${port}/healthz`).then(
    () => true,
    () => false,
  );
const PROCESSES = ["console", "proxy", "worker"];
const portsOf = (output: string, host = "localhost") =>
  PROCESSES.map(
    (name) => new RegExp(`${name} +http://${host.replaceAll(".", "\\.")}:(\\d+)`).exec(output)?.[1],
  );

test.skipIf(process.platform !== "linux")("it listens on loopback only, or where HOST says", async () => {
  {
    await using program = up();
    for (const port of portsOf(await isUp(program))) {
      expect([await isAnsweredAt("127.0.0.1", port), await isAnsweredAt("127.0.0.2", port)]).toEqual([
        true,
        false,
      ]);
    }
    program.kill("SIGTERM");
    await program.exited;
  }
  await using program = up([], { HOST: "0.0.0.0", METRICS_PORT: "0", METRICS_HOST: "127.0.0.3" });
  const output = await isUp(program);
  for (const port of portsOf(output)) {
    expect([await isAnsweredAt("127.0.0.1", port), await isAnsweredAt("127.0.0.2", port)]).toEqual([
      true,
      true,
    ]);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(404);
  }
  const metrics = /metrics +(http:\/\/127\.0\.0\.3:\d+\/metrics)/.exec(output)![1]!;
  const text = await (await fetch(metrics)).text();
  for (const role of PROCESSES) expect(text).toContain(`process_start_time_seconds{role="${role}"}`);
  expect(text.match(/^# TYPE process_start_time_seconds /gm)).toHaveLength(1);
});

test("a port in use is one clear line, and no process remains", async () => {
  await using taken = Bun.serve({ port: 0, fetch: () => new Response() });
  await using program = up([], { CONSOLE_PORT: String(taken.port) });
  expect(await program.exited).toBe(1);
  await until(() => program.errors().endsWith("\n"), { what: "the error is read" });
  expect(program.errors()).toBe(
    `basetide up: Port ${taken.port} is in use by another program. Stop it, or set CONSOLE_PORT to another port.\n`,
  );
  expect(readPidFile(join(dataDir, "postgres"))).toBeUndefined();
});

test("each entry point explains itself", async () => {
  for (const [script, text] of [
    ["apps/up/main.ts", "Usage: bun run up [--sandbox]"],
    ["apps/main.ts", "Usage: bun apps/main.ts <role>"],
  ] as const) {
    await using program = startProgram(script, ["--help"]);
    expect([script, await program.exited, program.errors()]).toEqual([script, 0, ""]);
    await program.says(text);
  }
});

test("an unknown argument or an invalid variable is one clear line", async () => {
  for (const [program, message] of [
    [up(["--sandbux"]), /^basetide up: .*--sandbux.* Usage: bun run up \[--sandbox\]\n$/],
    [up([], { CONSOLE_PORT: "many" }), /^basetide up: .*CONSOLE_PORT.*\n$/],
  ] as const) {
    await using _ = program;
    expect(await program.exited).toBe(1);
    await until(() => program.errors().endsWith("\n"), { what: "the error is read" });
    expect(program.errors()).toMatch(message);
  }
});

test("when the embedded Postgres ends by itself, everything ends and reports it", async () => {
  await using program = up();
  await isUp(program);
  process.kill(readPidFile(join(dataDir, "postgres"))!.pid, "SIGKILL");
  expect(await program.exited).toBe(1);
  expect(program.errors()).toContain("Embedded Postgres stopped");
});

test("the sandbox's demo replicates into the printed database, and a restart prints the same", {
  timeout: 2 * START_MS,
}, async () => {
  const env = { BASETIDE_DATA: join(dataDir, "no-such-folder") };
  const secrets = (output: string) =>
    [/token .*/, /API key .*/, /account .*/].map((line) => line.exec(output)?.[0]);
  let first: (string | undefined)[];
  {
    await using program = up(["--sandbox"], env);
    const output = await isUp(program);
    first = secrets(output);
    expect(output).not.toContain("There is no account yet");
    const url = /psql '(postgres:[^']+)'/.exec(output)![1]!;
    const sql = postgres(url, { max: 1 });
    const isSynced = async () =>
      (await sql`select completed_at >= started_at as done from _sync_meta`)[0]?.done;
    await until(isSynced, { what: "the first sync is complete", timeoutMs: START_MS, retryErrors: true });
    const [rows] = await sql`select count(*)::int as count from projects`;
    expect(rows?.count).toBe(250);
    const mine = async () => (await sql`select name from tasks where name = 'Mine'`).length;
    const before = await mine();
    const curl = /curl -s (\S+) (-H .*)/.exec(output)!;
    const wrote = Bun.spawnSync(["sh", "-c", `curl -sf --max-time 60 ${curl[1]} ${curl[2]}`]);
    expect(wrote.exitCode, "the curl that is printed").toBe(0);
    expect(await mine()).toBe(before + 1);
    const added = async () =>
      (await sql`select from tasks where created_time > now() - interval '1 hour'`).length;
    await until(async () => (await added()) > 1, {
      what: "everything continues by itself",
      timeoutMs: START_MS,
    });
    await expect(sql`delete from projects`).rejects.toMatchObject({ code: "25006" });
    await sql.end();
    program.kill("SIGINT");
    expect(await program.exited).toBe(0);
  }
  await using program = up(["--sandbox"], env);
  expect(secrets(await isUp(program))).toEqual(first);
  expect(first).not.toContain(undefined);
  program.kill("SIGTERM");
  expect(await program.exited).toBe(0);
});
