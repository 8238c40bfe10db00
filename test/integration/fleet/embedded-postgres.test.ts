import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import pino from "pino";
import postgres from "postgres";
import { afterAll, expect, test } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../apps/up/postgres/embedded-postgres";
import { canEnter } from "../../../apps/up/postgres/postgres-user";
import { type Keeper, readPidFile } from "../../../apps/up/postgres/postmaster";
import { createLogger } from "../../../core/log";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { scratchFolder } from "../../support/scratch";
import { unsafeButFast } from "../../support/server";

const OWNER = resolve(import.meta.dirname, "../../support/postgres-owner.ts");
const isRoot = process.getuid?.() === 0;
const hasSetpriv = Bun.which("setpriv") !== null;

const settings = { ...unsafeButFast, max_connections: "50" };

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new data folder, in a folder of its own. */
function newDataDir(): string {
  const folder = scratchFolder("pg");
  folders.push(folder);
  return join(folder, "postgres");
}

async function start(dataDir: string, port = 0): Promise<EmbeddedPostgres & AsyncDisposable> {
  const server = await startEmbeddedPostgres({
    dataDir,
    port,
    log: createLogger("silent", "test"),
    settings,
  });
  return { ...server, [Symbol.asyncDispose]: server.stop };
}

/** Runs `work` on one connection. */
async function on<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

const keepValue = (url: string) => on(url, (sql) => sql`create table kept as select 'value' as value`);
const readValue = (url: string) => on(url, async (sql) => (await sql`select value from kept`)[0]?.value);

interface Owner {
  said: { url: string; port: number; adopted: boolean; error?: string };
  kill(signal: NodeJS.Signals): Promise<unknown>;
}

/** Starts a process that owns a server, and waits for its report. */
async function startOwner(dataDir: string, words: string[] = [], command: string[] = []): Promise<Owner> {
  const child = Bun.spawn([...command, process.execPath, OWNER, dataDir, "0", ...words], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the owner said nothing: ${text}`);
    text += new TextDecoder().decode(value);
  }
  return {
    said: JSON.parse(text) as Owner["said"],
    async kill(signal) {
      child.kill(signal);
      return child.exited;
    },
  };
}

test("I7: data outlives a stop, a start creates no second cluster, and the password stays", async () => {
  const dataDir = newDataDir();
  const urls: string[] = [];
  {
    await using server = await start(dataDir);
    await keepValue(server.url);
    urls.push(new URL(server.url).password);
  }
  await using server = await start(dataDir);
  expect(await readValue(server.url)).toBe("value");
  urls.push(new URL(server.url).password);
  expect(new Set(urls).size).toBe(1);
  expect(statSync(`${dataDir}.password`).mode & 0o777).toBe(0o600);
});

test("the server requires the password, listens on loopback only, and opens no socket file", async () => {
  await using server = await start(newDataDir());
  const wrong = new URL(server.url);
  wrong.password = "wrong";
  await expect(on(wrong.href, (sql) => sql`select 1`)).rejects.toMatchObject({ code: "28P01" });
  const [facts] = await on(
    server.url,
    (
      sql,
    ) => sql`select current_setting('listen_addresses') as listen, current_setting('unix_socket_directories') as sockets,
      current_setting('server_encoding') as encoding, (select rolpassword like 'SCRAM-SHA-256$%' from pg_authid
      where rolname = current_user) as scram`,
  );
  expect(facts).toEqual({ listen: "127.0.0.1", sockets: "", encoding: "UTF8", scram: true });
});

test("a lost password file is replaced by a new password, and the data is still there", async () => {
  const dataDir = newDataDir();
  {
    await using server = await start(dataDir);
    await keepValue(server.url);
  }
  unlinkSync(`${dataDir}.password`);
  await using server = await start(dataDir);
  expect(await readValue(server.url)).toBe("value");
});

test.for<Keeper>(hasSetpriv ? ["setpriv", "shell"] : ["shell"])(
  "I7: after a SIGKILL of its owner the server ends by itself (%s), and the next start has the data",
  async (keeper) => {
    const dataDir = newDataDir();
    const owner = await startOwner(dataDir, [keeper]);
    await keepValue(owner.said.url);
    const { pid } = readPidFile(dataDir)!;
    await owner.kill("SIGKILL");
    await until(() => !isRunning(pid), { what: "the server is gone" });
    await using server = await start(dataDir);
    expect(server.adopted).toBe(false);
    expect(await readValue(server.url)).toBe("value");
  },
);

test("I7: a start right after the owner's SIGKILL waits for the old server to exit", async () => {
  const dataDir = newDataDir();
  const owner = await startOwner(dataDir);
  await keepValue(owner.said.url);
  await owner.kill("SIGKILL");
  await using server = await start(dataDir);
  expect(await readValue(server.url)).toBe("value");
});

test("I7: a start after the server itself was killed waits for its last child to release the memory", async () => {
  const dataDir = newDataDir();
  const owner = await startOwner(dataDir);
  await keepValue(owner.said.url);
  const { pid } = readPidFile(dataDir)!;
  const child = Number(Bun.spawnSync(["pgrep", "-o", "-P", String(pid)]).stdout.toString());
  process.kill(child, "SIGSTOP");
  process.kill(pid, "SIGKILL");
  await owner.kill("SIGKILL");
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  const starting = startEmbeddedPostgres({ dataDir, port: 0, log, settings });
  // If it fails while it is not awaited, the test fails, and not the whole run.
  starting.catch(() => {});
  try {
    await until(() => lines.some((line) => line.includes("still in use")), { what: "a start was refused" });
  } finally {
    process.kill(child, "SIGCONT");
  }
  const server = await starting;
  expect(await readValue(server.url)).toBe("value");
  await server.stop();
});

test("I7: a server that was left behind is stopped first", async () => {
  const dataDir = newDataDir();
  {
    await using server = await start(dataDir);
    await keepValue(server.url);
  }
  const orphan = await startOrphan(dataDir);
  await using server = await start(dataDir);
  expect(await orphan.exited).toBe(0);
  expect(await readValue(server.url)).toBe("value");
});

test("I7: a server that is killed while it is stopped, and that its parent does not reap, does not stop a start", async () => {
  const dataDir = newDataDir();
  {
    await using server = await start(dataDir);
    await keepValue(server.url);
  }
  // After `exec`, its parent is a program that waits for no child.
  await using _ = await startOrphan(dataDir, ["sh", "-c", '"$@" & exec sleep 60', "sh"]);
  const { pid } = readPidFile(dataDir)!;
  const write = (line: string) => {
    if (line.includes("of an earlier run")) process.kill(pid, "SIGKILL");
  };
  const server = await startEmbeddedPostgres({
    dataDir,
    port: 0,
    log: pino({ level: "info" }, { write }),
    settings,
  });
  await using _server = { [Symbol.asyncDispose]: server.stop };
  expect(await readValue(server.url)).toBe("value");
});

test("a postmaster.pid whose pid now belongs to another program does not stop a start", async () => {
  const dataDir = newDataDir();
  {
    await using server = await start(dataDir);
    await keepValue(server.url);
  }
  // Owned by the server's own user: Postgres knows that a process which it may not signal is no server.
  const { uid, gid } = statSync(dataDir);
  await using bystander = Bun.spawn(["sleep", "60"], isRoot ? { uid, gid } : {});
  const lines = [bystander.pid, dataDir, 1, 5432, "", "127.0.0.1", "1 1", "ready"];
  writeFileSync(join(dataDir, "postmaster.pid"), `${lines.join("\n")}\n`);
  await using server = await start(dataDir);
  expect(await readValue(server.url)).toBe("value");
  expect(bystander.exitCode).toBeNull();
});

test("if the port is in use, the next free one is used", async () => {
  await using taken = await listen();
  await using server = await start(newDataDir(), taken.port);
  expect(server.port).toBeGreaterThan(taken.port);
  expect(new URL(server.url).port).toBe(String(server.port));
});

test("two starts over one folder share one server, within a process and across", async () => {
  const dataDir = newDataDir();
  const [first, second] = await Promise.all([start(dataDir), start(dataDir)]);
  const owner = await startOwner(dataDir);
  expect([first!.adopted, second!.adopted, owner.said.adopted].sort()).toEqual([false, true, true]);
  expect(new Set([first!.url, second!.url, owner.said.url]).size).toBe(1);
  const [own, adopted] = first!.adopted ? [second!, first!] : [first!, second!];
  await adopted.stop();
  await owner.kill("SIGTERM");
  await keepValue(own.url);
  await own.stop();
});

test("a cluster of another version is refused by name, and so is a folder without one", async () => {
  const dataDir = newDataDir();
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, "notes.txt"), "mine");
  await expect(start(dataDir)).rejects.toMatchObject({
    code: "postgres_failed",
    message: expect.stringContaining("holds files but no database"),
  });
  writeFileSync(join(dataDir, "PG_VERSION"), "15\n");
  await expect(start(dataDir)).rejects.toMatchObject({
    code: "postgres_failed",
    message: expect.stringMatching(/is version 18, but .* was created by version 15/),
  });
});

test("a server that cannot start is reported with its last output", async () => {
  const dataDir = newDataDir();
  {
    await using _ = await start(dataDir);
  }
  writeFileSync(join(dataDir, "postgresql.auto.conf"), "shared_buffers = 'plenty'\n");
  await expect(start(dataDir)).rejects.toMatchObject({
    code: "postgres_failed",
    message: expect.stringContaining('invalid value for parameter "shared_buffers"'),
  });
});

test("an unprivileged user runs the server as itself", async ({ skip }) => {
  skip(!isRoot || !hasSetpriv, "only root, with setpriv, can become another user");
  const nobody = { uid: 65_534, gid: 65_534 };
  const needed = [import.meta.dirname, dirname(process.execPath)];
  skip(!needed.every((folder) => canEnter(nobody, folder)), `only root can enter ${needed.join(" or ")}`);
  const dataDir = newDataDir();
  chownSync(dirname(dataDir), nobody.uid, nobody.gid);
  const owner = await startOwner(
    dataDir,
    [],
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
  );
  expect(owner.said.error).toBeUndefined();
  await keepValue(owner.said.url);
  expect(statSync(dataDir).uid).toBe(nobody.uid);
  await owner.kill("SIGTERM");
  // Root uses the same user again, and finds the data.
  await using server = await start(dataDir);
  expect(await readValue(server.url)).toBe("value");
});

test.skipIf(!isRoot)(
  "root's data in a folder that Postgres's user cannot reach is kept elsewhere",
  async () => {
    const dataDir = newDataDir();
    chmodSync(dirname(dataDir), 0o700);
    await using server = await start(dataDir);
    const [row] = await on(server.url, (sql) => sql`select current_setting('data_directory') as folder`);
    folders.push(dirname(row!.folder));
    expect(row!.folder).toMatch(/^\/var\/lib\/basetide\/.*\/postgres$/);
  },
);

/** Starts the folder's server as a person would, so that no process holds the folder's lock, and waits until it is ready. */
async function startOrphan(dataDir: string, through: string[] = []) {
  const native = readFileSync(`${dataDir}/postmaster.opts`, "utf8").match(/"?(\S+\/postgres)/)![1]!;
  const { uid, gid } = statSync(dataDir);
  const orphan = Bun.spawn([...through, native, "-D", dataDir, "-p", String(await freePort())], {
    cwd: "/",
    stdout: "ignore",
    stderr: "ignore",
    ...(isRoot ? { uid, gid } : {}),
  });
  await until(() => readPidFile(dataDir)?.isReady, { what: "the orphan is ready" });
  return orphan;
}

function isRunning(pid: number): boolean {
  const state = Bun.spawnSync(["ps", "-o", "stat=", "-p", String(pid)])
    .stdout.toString()
    .trim();
  return state !== "" && !state.startsWith("Z");
}

/** A listener on a free port of loopback. */
async function listen(): Promise<{ port: number } & AsyncDisposable> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())),
  };
}
