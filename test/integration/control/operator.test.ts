import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { examineDisk } from "../../../apps/operator/doctor-service";
import { verifyPassword } from "../../../core/control/accounts";
import { createBase, deleteBase, getBase, recordRun } from "../../../core/control/bases";
import { removeProcess, reportWorker } from "../../../core/control/fleet";
import { reported } from "../../../core/control/fleet/processes";
import { createRequest, getDatabase } from "../../../core/control/placement";
import { version } from "../../../package.json" with { type: "json" };
import { asAdmin } from "../../support/admin";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { freshDatabase } from "../../support/database";
import { startMailbox } from "../../support/mailbox";
import { type OperatorAnswer, operate as operateHere, operatorEnv } from "../../support/operator";
import { addPlainBases } from "../../support/plain-bases";
import { startReceiver } from "../../support/receiver";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

// Commands that run as a process take a second or two to start on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

let control: TestControl;
let replicas: ReplicaServer;
beforeAll(async () => {
  replicas = await replicaServer();
  control = await testControl(replicas.clusterUrl);
});
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

const environment = () => ({ ...operatorEnv(control.ctx.config), REPLICA_URL: replicas.clusterUrl });

/** Runs the command line as a process, like an operator. */
async function operateAsProcess(
  args: string[],
  env: Record<string, string> = {},
  typed = "",
): Promise<OperatorAnswer> {
  const child = Bun.spawn([process.execPath, "apps/operator/main.ts", ...args], {
    env: { PATH: process.env.PATH ?? "", ...environment(), ...env },
    stdin: Buffer.from(typed),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, err };
}

/** Runs a command in this process. */
const operate = (args: string[], env: Record<string, string> = {}) =>
  operateHere(args, { ...environment(), ...env });

async function ask(...args: string[]) {
  const { code, out, err } = await operate([...args, "--json"]);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

test("account create prints a token that the API accepts; token create prints another one", async () => {
  const created = await ask(
    "account",
    "create",
    "--email",
    "op@example.com",
    "--password",
    "long enough",
    "--operator",
  );
  expect(created).toEqual({
    id: expect.stringMatching(/^acc_/),
    email: "op@example.com",
    is_operator: true,
    token: expect.stringMatching(/^bt_/),
  });
  const token = await ask("token", "create", "--email", "OP@example.com", "--name", "laptop");
  expect(token).toMatchObject({
    email: "op@example.com",
    name: "laptop",
    token: expect.stringMatching(/^bt_/),
  });
  expect(token.token).not.toBe(created.token);
  const again = await operateAsProcess([
    "account",
    "create",
    "--email",
    "op@example.com",
    "--password",
    "long enough",
    "--json",
  ]);
  expect([again.code, again.out]).toEqual([1, ""]);
  expect(JSON.parse(again.err).error.code).toBe("already_exists");
});

test("a password and a URL are read from standard input, where no other user of the machine sees them", async () => {
  const create = ["account", "create", "--email", "stdin@example.com"];
  const created = await operateAsProcess([...create, "--password-stdin"], {}, "long enough too\n");
  expect([created.code, created.err]).toEqual([0, ""]);
  const [login] = await control.ctx.db`
    select password from user_logins join users on users.id = user_id where email = 'stdin@example.com'`;
  expect(await verifyPassword("long enough too", login!.password)).toBe(true);

  for (const words of [create, [...create, "--password-stdin"]]) {
    const none = await operateAsProcess(words, {}, "\n");
    expect([none.code, none.err]).toEqual([1, expect.stringContaining("--password-stdin")]);
  }
  const both = await operateAsProcess([...create, "--password-stdin", "--password", "x"], {}, "y");
  expect([both.code, both.err]).toEqual([1, expect.stringContaining("cannot be used with")]);

  const add = ["cluster", "add", "--name", "typed", "--region", "eu-central-1", "--url-stdin"];
  const refused = await operateAsProcess(add, {}, "postgres://x:hidden@127.0.0.1:1/none\n");
  expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/^error: Not usable: /)]);
  expect(refused.err).not.toContain("hidden");
});

test("clusters are added, listed and drained; an unsuitable one is refused with the reason", async () => {
  const add = ["cluster", "add", "--name", "second", "--region", "eu-central-1"];
  const refused = await operate([...add, "--url", "postgres://x:hidden@127.0.0.1:1/none"]);
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(/^error: Not usable: /);
  expect(refused.err).not.toContain("hidden");
  const added = await ask(
    ...add,
    "--url",
    inject("clusterUrl"),
    "--public-host",
    "eu.example.com",
    "--public-port",
    "5432",
  );
  expect(added).toMatchObject({
    name: "second",
    host: "eu.example.com",
    port: 5432,
    state: "active",
    databases: 0,
  });
  expect(await ask("cluster", "drain", "second")).toMatchObject({ state: "draining" });
  expect(await ask("cluster", "list")).toMatchObject([
    { name: "default" },
    { name: "second", state: "draining" },
  ]);
  expect((await operate(["cluster", "list"])).out).toContain("eu-central-1");
  expect((await operate(["cluster", "drain", "third"])).err).toContain('There is no cluster "third"');
});

test("a cluster gets another admin URL, with which its databases are used; one of another server is refused", async () => {
  const { ctx } = control;
  await using server = await replicaServer();
  const setUrl = (name: string, url: string, ...words: string[]) =>
    operate(["cluster", "set-url", name, "--url", url, "--json", ...words]);
  await ask("cluster", "add", "--name", "third", "--region", "eu-west-1", "--url", server.clusterUrl);
  const owner = await control.addAccount("moves@example.com");
  const made = {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appTwo",
    destination: { kind: "new", region: "eu-west-1" },
  } as const;
  const base = await createBase(ctx, owner.id, made);

  const url = new URL(server.clusterUrl);
  const role = decodeURIComponent(url.username);
  await asAdmin((admin) => admin.unsafe(`alter role ${role} password 'another'`), server.superuserUrl);
  url.password = "another";
  const away = await setUrl("third", server.clusterUrl);
  expect([away.code, away.err]).toEqual([1, expect.stringContaining("Not usable")]);
  for (const [name, given, why] of [
    ["third", replicas.clusterUrl, "none of the databases"],
    ["default", url.href, "REPLICA_URL"],
    ["fourth", url.href, "no cluster"],
  ] as const) {
    const refused = await setUrl(name, given);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(why)]);
  }
  const { code, out, err } = await setUrl("third", url.href, "--public-host", "eu3.example.com");
  expect([code, err]).toEqual([0, ""]);
  expect(JSON.parse(out)).toMatchObject({ name: "third", host: "eu3.example.com", databases: 1 });
  await deleteBase(ctx, base);
  expect(await ask("cluster", "list")).toContainEqual(
    expect.objectContaining({ name: "third", host: "eu3.example.com", databases: 0 }),
  );
  const log = await ctx.db`select details from audit_log where action = 'cluster.changed'`;
  expect(log).toMatchObject([{ details: { name: "third" } }]);
  await ctx.db`delete from clusters where name = 'third'`;
});

test("requests are listed, approved and denied; a database is made writable and read-only again", async () => {
  const { ctx } = control;
  const owner = await control.addAccount("asks@example.com");
  const base = await createBase(ctx, owner.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appTwo",
  });
  const { database } = base;
  const writable = await createRequest(ctx.db, owner.id, { kind: "writable", databaseId: database.id });
  const pony = await createRequest(ctx.db, owner.id, { kind: "other", message: "A pony" });
  expect((await ask("request", "list")).map((row: { id: string }) => row.id).sort()).toEqual(
    [writable.id, pony.id].sort(),
  );
  expect(await ask("request", "approve", writable.id, "--answer", "Enjoy")).toMatchObject({
    account: "asks@example.com",
    subject: database.id,
    state: "approved",
    answer: "Enjoy",
  });
  expect(await getDatabase(ctx.db, database.id)).toMatchObject({ isWritable: true });
  expect(await ask("request", "deny", pony.id)).toMatchObject({ state: "denied" });
  expect(await ask("request", "list")).toEqual([]);
  expect(await ask("request", "list", "--all")).toHaveLength(2);
  const again = await operate(["request", "deny", pony.id]);
  expect([again.code, again.err]).toEqual([1, "error: The request was already denied\n"]);
  expect(await ask("database", "set-writable", database.id, "off")).toMatchObject({ is_writable: false });
  expect((await operate(["database", "set-writable", database.id, "maybe"])).err).toContain("on or off");
  expect((await operate(["database", "set-writable", "dat_nope"])).err).toContain("There is no database");
  await deleteBase(ctx, base);
});

test("bases are listed, shown, paused, resumed and synced; doctor reports what is wrong with one", async () => {
  const { ctx } = control;
  const owner = await control.addAccount(`${crypto.randomUUID()}@example.com`);
  const { id, database } = await createBase(ctx, owner.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  expect(await ask("base", "list")).toMatchObject([{ id, account_id: owner.id, state: "starting" }]);
  expect(await ask("base", "pause", id)).toMatchObject({ id, state: "paused" });
  expect((await operate(["base", "resync", id])).err).toContain("resume it first");
  expect(await ask("base", "resume", id)).toMatchObject({ id, state: "starting" });
  await ask("base", "resync", id);
  expect((await operate(["base", "rebuild", id, "nothing"])).err).toContain("There is no table nothing");
  expect((await getBase(ctx.db, id)).resyncRequestedAt).toBeInstanceOf(Date);
  expect((await operate(["base", "show", id])).out).toContain(database.name);
  expect((await operate(["base", "show", "bas_nope", "--json"])).code).toBe(1);

  // S15
  const odd = "Nice\x1b]0;pwned\x07\x1b[2J\u202e\x9b\nbas_x  forged";
  await ctx.db`update bases set name = ${odd} where id = ${id}`;
  for (const words of [["list"], ["show", id], ["list", "--json"]]) {
    const { out } = await operate(["base", ...words]);
    expect(out).toContain("Nice\\u001b]0;pwned");
    expect(out).not.toMatch(/(?!\n)\p{Cc}|\p{Bidi_Control}/u);
    // The start of the forged line: an id may begin like it.
    expect(out).not.toContain(odd.slice(odd.indexOf("\n")));
  }
  expect((await ask("base", "list"))[0].name).toBe(odd);
  await ctx.db`update bases set name = 'One' where id = ${id}`;

  const checks = async () => {
    const { code, out } = await operate(["doctor", "--json"]);
    const findings: { check: string; status: string; message: string; remedy: string | null }[] =
      JSON.parse(out);
    // Other tests create databases on the same server, some of which doctor finds open to every role.
    const own = findings.filter(
      ({ check, message }) =>
        check !== "disk" && !/may connect to the database (?:customer_|bt_)/.test(message),
    );
    return { code, bad: own.filter((finding) => finding.status !== "ok"), findings };
  };
  const worker = { id: "wrk_1", host: "here", pid: 1, startedAt: new Date(), bases: 1, capacity: 10 };
  await reportWorker(ctx.db, worker);
  await ctx.db`update installation set backed_up_at = now()`;
  const well = await checks();
  expect([well.code, well.bad]).toEqual([0, []]);
  expect(well.findings.map((finding) => finding.check)).toContain("secrets");

  await recordRun(ctx.db, id, {
    kind: "first",
    startedAt: new Date(),
    completedAt: null,
    seen: 0,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 0,
    waitMs: 0,
    error: { code: "source_key_refused", message: "Authentication required" },
  });
  await reportWorker(ctx.db, worker);
  expect(await checks()).toMatchObject({ code: 0, bad: [{ check: "base", status: "warning" }] });
  await removeProcess(ctx.db, worker.id);
  await asAdmin(
    (admin) => admin.unsafe(`drop database ${database.name} with (force)`),
    replicas.superuserUrl,
  );
  const lost = await checks();
  expect(lost.code).toBe(1);
  expect(lost.bad).toContainEqual(expect.objectContaining({ check: "replica", status: "problem" }));
  for (const { remedy } of lost.bad) expect(remedy).toBeTruthy();
});

test("doctor names a wrong key, missing tables, and an unreachable server", async () => {
  const doctor = async (env: Record<string, string>) => {
    const { code, out } = await operate(["doctor", "--json"], env);
    const findings: { check: string; status: string }[] = JSON.parse(out);
    expect(code).toBe(1);
    return findings.filter((finding) => finding.status === "problem").map((finding) => finding.check);
  };
  expect(await doctor({ SECRET_KEY: Buffer.alloc(32, 7).toString("base64") })).toContain("secrets");
  expect(await doctor({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" })).toEqual(["control_plane"]);
  await using empty = await freshDatabase();
  expect(await doctor({ DATABASE_URL: empty.url })).toEqual(["migrations"]);
});

/** What `doctor` says about one subject. */
async function check(name: string, env: Record<string, string> = {}) {
  const findings: { check: string; status: string; message: string; remedy: string | null }[] = JSON.parse(
    (await operate(["doctor", "--json"], env)).out,
  );
  return findings.find((finding) => finding.check === name)!;
}

test("doctor lists the versions of the running processes, and warns while they differ", async () => {
  const { db } = control.ctx;
  expect(await check("versions")).toMatchObject({ status: "ok", message: "No process is running" });
  const process = { host: "here", pid: 1, startedAt: new Date() };
  await reported(db, { ...process, id: "w1", role: "worker" });
  await reported(db, { ...process, id: "w2", role: "worker" });
  await reported(db, { ...process, id: "p1", role: "proxy" });
  const same = `Running processes: worker ${version} (2), proxy ${version} (1)`;
  expect(await check("versions")).toMatchObject({ status: "ok", message: same });
  await db`update processes set version = '9.9.9' where id = 'p1'`;
  const different = `Processes of several versions are running: worker ${version} (2), proxy 9.9.9 (1)`;
  expect(await check("versions")).toMatchObject({
    ...{ status: "warning", message: different, remedy: expect.stringContaining("older version") },
  });
  // One that has crashed counts no more.
  await db`update processes set seen_at = now() - interval '16 seconds' where id = 'p1'`;
  expect(await check("versions")).toMatchObject({ status: "ok" });
  await db`delete from processes`;
});

test("doctor warns of a backup that is older than a day, or was never made", async () => {
  const { db } = control.ctx;
  await db`update installation set backed_up_at = null`;
  const never = "No backup of the control plane is recorded";
  expect(await check("backup")).toMatchObject({ status: "warning", message: never });
  await db`update installation set backed_up_at = now() - interval '23 hours 59 minutes'`;
  const message = expect.stringContaining("is 23 hours old");
  expect(await check("backup")).toMatchObject({ status: "ok", message });
  await db`update installation set backed_up_at = now() - interval '24 hours 1 minute'`;
  expect(await check("backup")).toMatchObject({
    ...{ status: "warning", message: expect.stringContaining("is 24 hours old") },
    remedy: expect.stringContaining("Backup and restore"),
  });
});

test("doctor checks the workers, the mail server, the public address and the disk", async () => {
  const { ctx } = control;
  const owner = await control.addAccount("checked@example.com");
  const base = await createBase(ctx, owner.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appTwo",
  });
  const message = expect.stringMatching(/^No worker is alive, and \d+ bases are not synced/);
  expect(await check("workers")).toMatchObject({ status: "problem", message });
  const worker = { id: "wrk_2", host: "here", pid: 1, startedAt: new Date(), bases: 7, capacity: 10 };
  await reportWorker(ctx.db, worker);
  const alive = "Workers that are alive: 1; bases that they hold: 7";
  expect(await check("workers")).toMatchObject({ status: "ok", message: alive });
  await ctx.db`update processes set seen_at = now() - interval '1 hour' where id = ${worker.id}`;
  expect(await check("workers")).toMatchObject({ status: "problem", message });
  await removeProcess(ctx.db, worker.id);
  await deleteBase(ctx, base);

  expect((await check("mail")).message).toContain("SMTP_URL is not set");
  const refused = await check("mail", { SMTP_URL: "smtp://user:secret-word@127.0.0.1:1" });
  expect(refused).toMatchObject({ status: "problem", message: expect.stringContaining("ECONNREFUSED") });
  expect(refused.message).not.toContain("secret-word");
  const mailbox = startMailbox();
  expect(await check("mail", { SMTP_URL: mailbox.url })).toMatchObject({ status: "ok" });
  mailbox.stop();

  // An address of this machine that counts as a public one.
  await using site = startReceiver("127.0.0.2");
  const address = (url: string, env = {}) => check("address", { CONSOLE_URL: url, ...env });
  expect((await check("address")).message).toContain("this machine only");
  expect(await address(site.url(""))).toMatchObject({ status: "ok" });
  expect(site.received.at(-1)!.path).toBe("/signup");
  site.answer = { status: 502 };
  expect((await address(site.url(""))).message).toContain("answers with status 502");
  expect(await address("http://127.0.0.2:1")).toMatchObject({ status: "warning" });
  const plain = await address("http://console.example.com", { NODE_ENV: "production" });
  expect([plain.status, plain.message]).toEqual(["warning", "http://console.example.com is not encrypted"]);
  expect((await check("disk")).message).toMatch(/^\d+\.\d GB are free/);
  const [low, enough] = [9, 10].map((bavail) => examineDisk({ bavail, blocks: 100, bsize: 1e8 }));
  expect([low!.severity, low!.message]).toEqual(["warning", expect.stringMatching(/^0\.9 GB are free/)]);
  expect(enough!.severity).toBe("ok");
});

test("server migrate creates what an empty database lacks, and then finds nothing to do", async () => {
  await using empty = await freshDatabase();
  const migrate = () => operate(["server", "migrate", "--json"], { DATABASE_URL: empty.url });
  const first = await migrate();
  expect([first.code, first.err]).toEqual([0, ""]);
  expect(JSON.parse(first.out).migrations[0]).toMatch(/^0001_/);
  expect(JSON.parse((await migrate()).out)).toEqual({ migrations: [] });
  const doctor = JSON.parse((await operate(["doctor", "--json"], { DATABASE_URL: empty.url })).out);
  expect(doctor).toContainEqual(expect.objectContaining({ check: "migrations", status: "ok" }));
  const away = await operate(["server", "migrate"], { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });
  expect([away.code, away.out]).toEqual([1, ""]);
  expect(away.err).toContain("The control-plane database cannot be reached");
});

test("without DATABASE_URL, the address that the embedded Postgres wrote to DATA_DIR is used", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "basetide-operator-"));
  try {
    const env = { DATABASE_URL: "", DATA_DIR: dataDir };
    expect((await operate(["cluster", "list"], env)).err).toContain("DATABASE_URL is not set");
    writeFileSync(join(dataDir, "database-url"), `${control.ctx.config.databaseUrl}\n`);
    expect((await operate(["cluster", "list"], env)).out).toContain("default");
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("an invalid environment is reported in one line that names the variable", async () => {
  const { code, err } = await operateAsProcess(["base", "list"], { SECRET_KEY: "short" });
  expect(code).toBe(1);
  expect(err.trim()).toBe("error: Configuration: SECRET_KEY: must be 32 bytes in base64");
});

test("base retry lifts a base's quarantine and requests a sync; base delete --force ends a quarantined deletion", async () => {
  const { db, secrets } = control.ctx;
  const [id = "", deleted = ""] = await addPlainBases(control, 2);
  const findings = async () => {
    const { out } = await operate(["doctor", "--json"]);
    return out;
  };
  await db`
    insert into base_crashes (base_id, crashes, suspected_at, quarantines, quarantined_until)
    values (${id}, 3, now(), 2, now() + interval '1 hour')`;
  expect(await ask("base", "retry", id)).toEqual({ id, retried: true });
  expect(await db`select from base_crashes where base_id = ${id} and quarantined_until > now()`).toHaveLength(
    0,
  );
  // One that is not quarantined is unchanged, and is no error.
  expect(await ask("base", "retry", deleted)).toEqual({ id: deleted, retried: true });

  // Its database is on a missing customer's server: nothing is sent there.
  const [base] = await db<{ database_id: string }[]>`select database_id from bases where id = ${deleted}`;
  const encrypted = secrets.encrypt("postgres://u:p@127.0.0.1:1/db", `databases.url:${base!.database_id}`);
  await db`
    update databases set cluster_id = null, encrypted_password = null, encrypted_url = ${encrypted}, external_host = '127.0.0.1',
      external_port = 1 where id = ${base!.database_id}`;
  await db`update bases set state = 'deleting' where id = ${deleted}`;
  await db`insert into task_attempts (task, subject, unended) values ('deletion', ${deleted}, 3)`;
  expect(await findings()).toContain(`base delete ${deleted} --force`);
  expect(await ask("base", "delete", deleted, "--force")).toEqual({ id: deleted, deleted: true });
  expect(await db`select from bases where id = ${deleted}`).toHaveLength(0);
  expect(await findings()).not.toContain(`base delete ${deleted} --force`);
  expect(await operate(["base", "delete", deleted, "--force"])).toMatchObject({
    code: 1,
    err: expect.stringContaining(deleted),
  });
  await db`delete from bases where id = ${id}`;
});
