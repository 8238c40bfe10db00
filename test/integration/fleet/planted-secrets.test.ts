/**
 * Recognizable secrets are given to a complete service, which then gets every failure that can be caused. None of them
 * may appear in its processes' output: logs at the lowest level, error answers, metrics, jobs, the control plane's
 * tables, and crash reports.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { startSandbox } from "../../../apps/sandbox/server";
import { asAdmin } from "../../support/admin";
import { controlDatabase } from "../../support/database";
import { until } from "../../support/poll";
import { type Program, startProgram } from "../../support/program";

const marked = (mark: string) => `${mark}${randomBytes(6).toString("hex")}`;

/** A role of the control plane with a recognizable password. */
async function withPassword(url: string, password: string): Promise<string> {
  const role = `bt_planted_${randomBytes(4).toString("hex")}`;
  const owner = new URL(url).username;
  // The tables that it creates there belong to it; the test reads them as the control plane's role.
  await asAdmin((admin) =>
    admin.unsafe(`create role ${role} superuser login password '${password}'; grant ${role} to ${owner}`),
  );
  onTestFinished(() =>
    asAdmin(async (admin) => {
      await admin.unsafe(`reassign owned by ${role} to current_user; drop owned by ${role}`).catch(() => {});
      await admin.unsafe(`drop role if exists ${role}`).catch(() => {});
    }),
  );
  return Object.assign(new URL(url), { username: role, password }).href;
}

/** The port that a process prints. */
function portOf(program: Program): Promise<number> {
  return until(
    () => {
      const lines = program
        .output()
        .split("\n")
        .filter((line) => line.startsWith("{"));
      return lines.map((line) => JSON.parse(line).port as number | undefined).find((port) => port);
    },
    { what: "the process prints its port", timeoutMs: 30_000 },
  );
}

/** All rows of all tables as text, including jobs. */
async function everything(sql: postgres.Sql): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', n.nspname, c.relname) as name
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema')`;
  const texts: string[] = [];
  for (const { name } of tables) {
    const rows = await sql.unsafe<{ row: string }[]>(`select t::text as row from ${name} as t`);
    texts.push(`${name}: ${rows.map(({ row }) => row).join("\n")}`);
  }
  return texts.join("\n");
}

function expectNone(place: string, text: string, secrets: Record<string, string>): void {
  const found = Object.entries(secrets).flatMap(([name, secret]) => {
    const forms = [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString("base64").replace(/=+$/, ""),
    ];
    const at = forms.map((form) => text.indexOf(form)).find((index) => index >= 0);
    return at === undefined ? [] : [`${name}: …${text.slice(Math.max(0, at - 200), at + 80)}…`];
  });
  expect({ place, found }).toEqual({ place, found: [] });
}

test("a service with every kind of failure reveals no secret", async () => {
  await using control = await controlDatabase();
  await using sandbox = await startSandbox({ port: 0 });
  const sourceId = sandbox.control.createBase({
    tables: [
      {
        name: "Items",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "bolt" } }],
      },
    ],
  });
  const planted: Record<string, string> = {
    databasePassword: marked("PlantedDatabase"),
    secretKey: randomBytes(32).toString("base64"),
    previousKey: randomBytes(32).toString("base64"),
    smtpPassword: marked("PlantedSmtp"),
    apiKey: sandbox.key,
    badKey: `pat${marked("Planted")}.${randomBytes(32).toString("hex")}`,
    oddKey: marked("PlantedOddKey"),
    userPassword: marked("PlantedUser"),
    otherPassword: marked("PlantedOther"),
    externalPassword: marked("PlantedExternal"),
    badToken: `bt_${randomBytes(32).toString("base64url")}`,
  };
  const env = {
    DATABASE_URL: await withPassword(control.url, planted.databasePassword!),
    SECRET_KEY: planted.secretKey,
    SECRET_KEY_PREVIOUS: planted.previousKey,
    SMTP_URL: `smtp://basetide:${planted.smtpPassword}@127.0.0.1:9`,
    UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=http://127.0.0.1:9`,
    CONSOLE_PORT: "0",
    PROXY_PORT: "0",
    WORKER_PORT: "0",
    LOG_LEVEL: "trace",
    UPSTREAM_TIMEOUT_MS: "2000",
  };
  await using console_ = startProgram("apps/console/main.ts", [], env);
  const origin = `http://127.0.0.1:${await portOf(console_)}`;
  await using proxy = startProgram("apps/proxy/main.ts", [], env);
  await using worker = startProgram("apps/worker/main.ts", [], env);
  const [proxyPort, workerPort] = [await portOf(proxy), await portOf(worker)];

  const operate = async (...args: string[]) => {
    await using operator = startProgram("apps/operator/main.ts", args, env);
    await operator.exited;
    return operator;
  };
  const made = await operate(
    ...["account", "create", "--email", "planted@example.org", "--password", planted.userPassword!, "--json"],
  );
  planted.token = JSON.parse(made.output()).token;

  /** The answers that unknown clients, programs and users got for errors. */
  const answers: string[] = [];
  const call = async (path: string, init: RequestInit & { token?: string } = {}) => {
    const { token = planted.token!, ...rest } = init;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...rest.headers };
    const response = await fetch(`${origin}${path}`, { redirect: "manual", ...rest, headers });
    const text = await response.text();
    if (response.status >= 400) answers.push(`${JSON.stringify([...response.headers])} ${text}`);
    return { status: response.status, text, headers: response.headers };
  };
  const send = (path: string, body: unknown, token?: string) =>
    call(path, { method: "POST", body: JSON.stringify(body), ...(token ? { token } : {}) });

  // Signing in; a cookie
  const form = (fields: Record<string, string | undefined>) =>
    new URLSearchParams(fields as Record<string, string>).toString();
  const asPerson = { origin, "content-type": "application/x-www-form-urlencoded", accept: "text/html" };
  const signIn = (password: string) =>
    call("/sign-in", {
      method: "POST",
      headers: asPerson,
      body: form({ email: "planted@example.org", password }),
    });
  const { headers, status } = await signIn(planted.userPassword!);
  expect(status).toBe(303);
  const cookie = headers.getSetCookie()[0]!.split(";")[0]!;
  planted.session = decodeURIComponent(cookie.split("=")[1]!);
  await signIn(planted.otherPassword!);
  await call("/forgot-password", {
    method: "POST",
    headers: asPerson,
    body: form({ email: "planted@example.org" }),
  });
  await call("/signup", {
    method: "POST",
    headers: asPerson,
    body: form({ email: "other@example.org", password: planted.otherPassword }),
  });

  // A base, its credentials, and a write
  const source = { platform: "airtable", api_key: planted.apiKey };
  const base = JSON.parse((await send("/api/v1/bases", { ...source, base_id: sourceId })).text);
  await until(async () => JSON.parse((await call(`/api/v1/bases/${base.id}`)).text).sync?.completed_at, {
    what: "the first sync completes",
    timeoutMs: 60_000,
    intervalMs: 200,
  });
  const credentials = JSON.parse((await call(`/api/v1/bases/${base.id}/credentials`)).text);
  planted.replicaPassword = credentials.password;
  const rotated = JSON.parse((await send(`/api/v1/bases/${base.id}/credentials/rotate`, {})).text);
  planted.rotatedPassword = rotated.password;
  const through = async (path: string, key: string, init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${proxyPort}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    const text = await response.text();
    if (!response.ok) answers.push(text);
    return text;
  };
  const tables = JSON.parse(
    await through(`/api.airtable.com/v0/meta/bases/${sourceId}/tables`, planted.apiKey!),
  );
  const tablePath = `/api.airtable.com/v0/${sourceId}/${tables.tables[0].id}`;
  const record = { method: "POST", body: JSON.stringify({ records: [{ fields: {} }] }) };
  await through(tablePath, planted.apiKey!, record);
  for (const key of [planted.badKey!, planted.oddKey!]) await through(tablePath, key, record);
  await through(`/content.airtable.com/v0/${sourceId}/x`, planted.apiKey!, record);
  await through(`/evil.example/v0/x?key=${planted.oddKey}`, planted.apiKey!);

  // Invalid requests
  await send("/api/v1/source-bases", { platform: "airtable", api_key: planted.badKey });
  await send("/api/v1/source-bases", { platform: "airtable", api_key: planted.oddKey });
  await send("/api/v1/source-bases", { platform: [planted.oddKey], api_key: [planted.badKey] });
  await send("/api/v1/bases", { ...source, extra: planted.oddKey, base_id: [planted.badKey] });
  await call("/api/v1/bases", { method: "POST", body: `{"api_key": "${planted.oddKey}` });
  await send("/api/v1/bases", {}, planted.badToken);
  await send(`/api/v1/bases?api_key=${planted.badKey}`, {}, planted.oddKey);
  for (const url of [
    `postgres://x:${planted.externalPassword}@127.0.0.1:9/z`,
    `postgres://x:${planted.externalPassword}@127.0.0.1:port/z`,
    `postgres://x:${planted.externalPassword}@nowhere.invalid/z`,
    Object.assign(new URL(env.DATABASE_URL), { password: planted.externalPassword }).href,
  ]) {
    await send("/api/v1/bases", { ...source, base_id: sourceId, destination: { kind: "external", url } });
    await operate("cluster", "add", "--name", "x", "--region", "y", "--url", url).then((operator) => {
      answers.push(operator.output(), operator.errors());
    });
  }
  await send("/hooks/airtable/bas_x", { secret: planted.oddKey });

  // A replica and a control plane that fail in the middle
  await asAdmin((admin) => admin.unsafe(`drop database ${base.database.name} with (force)`));
  await send(`/api/v1/bases/${base.id}/sync`, {});
  await through(tablePath, planted.apiKey!, record);
  await worker.says('"sync failed"', 40_000).catch(() => worker.says('"level":50', 20_000));
  await control.sql`alter table users rename to users_away`;
  await control.sql`alter table audit_log add constraint full_up check (id < 0) not valid`;
  await signIn(planted.userPassword!);
  await call(`/bases/${base.id}`, { headers: { cookie, accept: "text/html" } });
  await call(`/api/v1/bases/${base.id}`, {
    method: "PATCH",
    body: JSON.stringify({ api_key: planted.apiKey, turbo: true }),
  });
  await control.sql`alter table audit_log drop constraint full_up`;
  await control.sql`alter table users_away rename to users`;
  await control.sql`alter table bases alter column encrypted_api_key type varchar(40) using left(encrypted_api_key, 40)`;
  await call(`/api/v1/bases/${base.id}`, {
    method: "PATCH",
    body: JSON.stringify({ api_key: planted.apiKey }),
  });
  answers.push((await operate("doctor", "--json")).output());
  await control.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.catch(() => {});

  const metrics = await Promise.all(
    [origin, `http://127.0.0.1:${proxyPort}`, `http://127.0.0.1:${workerPort}`].map(async (address) =>
      (await fetch(`${address}/metrics`)).text(),
    ),
  );
  expect(answers.length).toBeGreaterThan(20);
  expectNone("answers", answers.join("\n"), planted);
  expectNone("metrics", metrics.join("\n"), planted);
  const sql = postgres(control.url, { max: 1, onnotice: () => {} });
  expectNone("tables", await everything(sql).finally(() => sql.end()), planted);
  for (const [name, program] of Object.entries({ console: console_, proxy, worker })) {
    program.kill("SIGTERM");
    await program.exited;
    expect(program.output()).toContain('"level":');
    expectNone(name, program.output() + program.errors(), planted);
  }
}, 180_000);

test("a crash prints no secret, whatever the error contains", async () => {
  await using control = await controlDatabase();
  const planted = {
    apiKey: `pat${marked("Planted")}.${randomBytes(32).toString("hex")}`,
    password: marked("PlantedPassword"),
    token: `bt_${randomBytes(32).toString("base64url")}`,
    secretKey: randomBytes(32).toString("base64"),
    smtpPassword: marked("PlantedSmtp"),
    databasePassword: marked("PlantedDatabase"),
  };
  const env = {
    DATABASE_URL: Object.assign(new URL(control.url), { password: planted.databasePassword }).href,
    SECRET_KEY: planted.secretKey,
    SMTP_URL: `smtp://basetide:${planted.smtpPassword}@127.0.0.1:9`,
    LOG_LEVEL: "trace",
  };
  for (const way of ["start", "rejection", "exception", "string"]) {
    const given = [way, planted.apiKey, planted.password, planted.token];
    await using program = startProgram("test/support/crash.ts", given, env);
    expect([way, await program.exited]).toEqual([way, 1]);
    const said = program.output() + program.errors();
    expect(said).toContain("asked with Bearer [redacted]");
    expectNone(way, said, planted);
  }
});

test("a start that fails because of its configuration does not print it", {
  timeout: 120_000,
}, async () => {
  const planted = {
    password: marked("PlantedPassword"),
    key: marked("PlantedKey"),
    other: marked("PlantedOther"),
  };
  const environments: Record<string, string>[] = [
    { DATABASE_URL: `postgres://basetide:${planted.password}/x@127.0.0.1:54/x` },
    { DATABASE_URL: `postgres://basetide:${planted.password}@127.0.0.1:notaport/x` },
    { DATABASE_URL: `mysql://basetide:${planted.password}@127.0.0.1/x` },
    { DATABASE_URL: `postgres://basetide:${planted.password}@127.0.0.1:9/x`, SECRET_KEY: planted.key },
    {
      DATABASE_URL: `postgres://basetide:${planted.password}@127.0.0.1:9/x`,
      SECRET_KEY_PREVIOUS: planted.key,
    },
    { DATABASE_URL: `postgres://basetide:${planted.password}@nowhere.invalid:9/x` },
    { REPLICA_URL: `basetide:${planted.password}`, SMTP_URL: `smtp://basetide:${planted.other}@` },
  ];
  const fails = async (script: string, words: string[], env: Record<string, string>) => {
    const base = { SECRET_KEY: randomBytes(32).toString("base64"), CONSOLE_PORT: "0" };
    await using program = startProgram(script, words, { DATABASE_URL: undefined, ...base, ...env });
    expect(await program.exited).toBe(1);
    expectNone(`${script} ${Object.keys(env)}`, program.output() + program.errors(), planted);
  };
  for (const env of environments)
    await Promise.all([
      fails("apps/console/main.ts", [], env),
      fails("apps/operator/main.ts", ["cluster", "list"], env),
    ]);
});
