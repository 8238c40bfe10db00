/**
 * The embedded Postgres: a real server from an npm package, for evaluation and for the tests.
 *
 * Guarantees: data survives any kind of end, SIGKILL included; the server does not outlive its owner for long; a folder
 * has at most one server (a second start adopts the first one's); the server requires a password and listens on
 * loopback. All settings except the port are in `postgresql.conf`, so `alter system` overrides them: to open the server
 * to other machines, run `alter system set listen_addresses = '*'` and restart.
 *
 * Next to the data folder are `<name>.password` (the superuser's, mode 0600) and `<name>.lock`. The superuser and the
 * service's own roles may log in from this machine only.
 */
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { asBasetideError, BasetideError, isBasetideError } from "../../../core/errors";
import type { Logger } from "../../../core/log";
import { type FileLock, takeFileLock } from "../file-lock";
import { findFreePort, isPortFree } from "../free-port";
import { type Binaries, findBinaries } from "./postgres-binaries";
import { canEnter, chooseUser, type RunAs } from "./postgres-user";
import {
  isServerOf,
  type Keeper,
  type Postmaster,
  readPidFile,
  serverEnv,
  startPostmaster,
  stopOrphan,
} from "./postmaster";

const SUPERUSER = "postgres";
/** The roles that the service uses: for the control plane, and for the cluster of replicas. */
export const CONTROL_ROLE = "basetide_control";
export const CLUSTER_ROLE = "basetide_cluster";
const LOOPBACK = "127.0.0.1";
/** Where root stores what the system user must reach, if that user cannot enter the requested folder. */
export const SHARED_DIR = "/var/lib/basetide";
/** The longest wait until another owner of the folder is ready, or has ended. */
const OWNER_MS = 60_000;
/** The longest wait until a killed server's child processes release its shared memory. */
const ORPHANS_MS = 15_000;
const POLL_MS = 50;

/** For a small machine with many customers' short queries. */
const SETTINGS: Record<string, string> = {
  listen_addresses: LOOPBACK,
  unix_socket_directories: "",
  max_connections: "1000",
  shared_buffers: "256MB",
  max_wal_size: "2GB",
  checkpoint_timeout: "15min",
  // For short queries, JIT compilation costs more than it saves.
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_destination: "stderr",
  logging_collector: "off",
};

interface EmbeddedPostgresOptions {
  /** The server's folder. The folder above it is also created, and holds the password and the lock. */
  dataDir: string;
  /** The port to try first; 0 takes any. */
  port: number;
  log: Logger;
  /** Lines for `postgresql.conf`, over the defaults. */
  settings?: Record<string, string>;
  /** How the server learns that this process has died. Default: what the machine supports. */
  keeper?: Keeper;
}

export interface EmbeddedPostgres {
  /** Superuser's URL of the database `postgres`. */
  url: string;
  port: number;
  /** Another process runs this server: it stops with that process, and `stop` has no effect on it. */
  adopted: boolean;
  /** Resolves with the last lines of the server's log, however it ended; never for an adopted server. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

/** The folder and the files next to it. */
interface Place {
  dataDir: string;
  user: RunAs | undefined;
  passwordFile: string;
  lockFile: string;
}

/**
 * Starts Postgres over `dataDir`, and initializes the cluster at the first start.
 *
 * @throws BasetideError `postgres_failed` with the last lines of the server's log
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  try {
    const place = choosePlace(resolve(options.dataDir), options.log);
    const lock = await takeLockOrServer(place);
    if (!("release" in lock)) return lock;
    try {
      return await startOwned(place, lock, options);
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw asBasetideError(error, "postgres_failed");
  }
}

/** Returns `wanted`, or a folder under `SHARED_DIR` if Postgres's user cannot reach it. */
function choosePlace(wanted: string, log: Logger): Place {
  let dataDir = wanted;
  const user = chooseUser(wanted);
  if (!canEnter(user, dirname(wanted))) {
    const hash = Bun.hash(wanted).toString(36).slice(0, 8);
    dataDir = join(SHARED_DIR, `${basename(dirname(wanted))}-${hash}`.replace(/^\./, ""), basename(wanted));
    log.warn(
      { wanted, dataDir },
      "the postgres user cannot access the data folder; the database is stored in another folder",
    );
  }
  mkdirSync(dirname(dataDir), { recursive: true });
  dataDir = join(realpathSync(dirname(dataDir)), basename(dataDir));
  return { dataDir, user, passwordFile: `${dataDir}.password`, lockFile: `${dataDir}.lock` };
}

/** Returns the folder's lock; or, if another process has the lock and its server is ready, that server. */
async function takeLockOrServer(place: Place): Promise<FileLock | EmbeddedPostgres> {
  const deadline = Date.now() + OWNER_MS;
  while (Date.now() < deadline) {
    const lock = takeFileLock(place.lockFile);
    if (lock) return lock;
    const file = readPidFile(place.dataDir);
    if (file?.isReady && isServerOf(place.dataDir, file.pid) && existsSync(place.passwordFile)) {
      const never = new Promise<string>(() => {});
      return { ...address(place, file.port), adopted: true, exited: never, stop: async () => {} };
    }
    await Bun.sleep(POLL_MS);
  }
  throw new BasetideError(
    "postgres_failed",
    `Embedded Postgres: another process holds ${place.lockFile}, but no server over ${place.dataDir} became ready.`,
  );
}

async function startOwned(
  place: Place,
  lock: FileLock,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log } = options;
  const binaries = findBinaries(place.user, SHARED_DIR);
  await stopOrphan(place.dataDir, log);
  const settings = withReserved({ ...SETTINGS, ...options.settings });
  if (!existsSync(join(place.dataDir, "PG_VERSION"))) await makeCluster(place, binaries, settings);
  checkVersion(place.dataDir, binaries.major);
  configure(place, settings);
  if (!existsSync(place.passwordFile)) await resetPassword(place, binaries);
  const { postmaster, port } = await startOnFreePort(place, binaries, options);
  if (options.port !== 0 && port !== options.port) {
    log.info({ wanted: options.port, port }, "Postgres port is in use; using the next free port");
  }
  return {
    ...address(place, port),
    adopted: false,
    exited: postmaster.exited,
    async stop() {
      await postmaster.stop();
      lock.release();
    },
  };
}

/** Reserves a fifth of the connections for the service: customers' roles cannot take them. */
function withReserved(settings: Record<string, string>): Record<string, string> {
  return { reserved_connections: String(Math.floor(Number(settings.max_connections) / 5)), ...settings };
}

/** Runs `initdb` in a temporary folder and renames it when complete: a cluster cut short by a crash is never used. */
async function makeCluster(
  place: Place,
  binaries: Binaries,
  settings: Record<string, string>,
): Promise<void> {
  const fresh = `${place.dataDir}.new`;
  const passwordFile = `${place.dataDir}.new-password`;
  if (existsSync(place.dataDir) && readdirSync(place.dataDir).length > 0) {
    throw new BasetideError(
      "postgres_failed",
      `Embedded Postgres: ${place.dataDir} holds files but no database. Move them to another folder, or set DATA_DIR.`,
    );
  }
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  keepPassword(place, crypto.randomUUID());
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, readPassword(place), { mode: 0o600, flag: "wx" });
  for (const path of place.user ? [fresh, passwordFile] : []) {
    chownSync(path, place.user!.uid, place.user!.gid);
  }
  try {
    await run(place, [
      binaries.initdb,
      `--pgdata=${fresh}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // Sorts by code point, the same on every machine and forever: no index depends on a system library.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
      ...(settings.fsync === "off" ? ["--no-sync"] : []),
    ]);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(fresh, place.dataDir);
}

function checkVersion(dataDir: string, major: string): void {
  const found = readFileSync(join(dataDir, "PG_VERSION"), "utf8").trim();
  if (found === major) return;
  throw new BasetideError(
    "postgres_failed",
    `Embedded Postgres is version ${major}, but ${dataDir} was created by version ${found}. Start the release of Basetide that created it and move the data with pg_dumpall, or move the folder to another place to start with an empty database.`,
  );
}

function configure(place: Place, settings: Record<string, string>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  put(
    place,
    "postgresql.conf",
    `# Written at each start; \`alter system\` overrides it.\n${lines.join("\n")}\n`,
  );
  // `listen_addresses` decides which machines may connect; every connection needs a password.
  const roles = [SUPERUSER, CONTROL_ROLE, CLUSTER_ROLE].join(",");
  put(
    place,
    "pg_hba.conf",
    [
      `host all ${roles} 127.0.0.1/32 scram-sha-256`,
      `host all ${roles} ::1/128 scram-sha-256`,
      `host all ${roles} all reject`,
      "host all all all scram-sha-256\n",
    ].join("\n"),
  );
}

/**
 * Writes a file of the data folder by renaming it into place: root must not follow a link that Postgres's user created.
 */
function put(place: Place, name: string, text: string): void {
  const draft = `${place.dataDir}.draft`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600, flag: "wx" });
  if (place.user) chownSync(draft, place.user.uid, place.user.gid);
  renameSync(draft, join(place.dataDir, name));
}

/** A lost password file does not lose the database: single-user mode needs no password. */
async function resetPassword(place: Place, binaries: Binaries): Promise<void> {
  const password = crypto.randomUUID();
  await run(
    place,
    [binaries.postgres, "--single", "-D", place.dataDir, "postgres"],
    `alter role ${SUPERUSER} password '${password}';\n`,
  );
  keepPassword(place, password);
}

/** Starts on the wanted port, else on the next free one, even if another process takes the port in between. */
async function startOnFreePort(
  place: Place,
  binaries: Binaries,
  options: EmbeddedPostgresOptions,
): Promise<{ postmaster: Postmaster; port: number }> {
  const deadline = Date.now() + ORPHANS_MS;
  let port = await findFreePort(options.port, LOOPBACK);
  for (;;) {
    const command = [binaries.postgres, "-D", place.dataDir, "-p", String(port)];
    try {
      return { postmaster: await startPostmaster({ ...options, ...place, command }), port };
    } catch (error) {
      if (!isBasetideError(error, "postgres_failed")) throw error;
      const isHeld = error.message.includes("still in use") && Date.now() < deadline;
      if (!isHeld && (await isPortFree(port, LOOPBACK))) throw error;
      if (isHeld) await Bun.sleep(POLL_MS);
      else port = await findFreePort(options.port, LOOPBACK);
    }
  }
}

/** Runs a program as Postgres's user. The error has the last lines of its output. */
async function run(place: Place, command: string[], input = ""): Promise<void> {
  const child = Bun.spawn(command, {
    cwd: "/",
    env: serverEnv,
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
    ...place.user,
  });
  const [out, words, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  // Single-user mode reports a failed statement, but exits with 0.
  if (code === 0 && !/^ERROR:/m.test(words)) return;
  const last = (words.trim() || out.trim()).split("\n").slice(-5).join(" | ");
  throw new BasetideError("postgres_failed", `Embedded Postgres: ${basename(command[0]!)} failed: ${last}`);
}

function keepPassword(place: Place, password: string): void {
  rmSync(place.passwordFile, { force: true });
  writeFileSync(place.passwordFile, `${password}\n`, { mode: 0o600, flag: "wx" });
}

function readPassword(place: Place): string {
  return readFileSync(place.passwordFile, "utf8").trim();
}

function address(place: Place, port: number): { url: string; port: number } {
  return { url: `postgres://${SUPERUSER}:${readPassword(place)}@${LOOPBACK}:${port}/postgres`, port };
}
