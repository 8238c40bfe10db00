/**
 * The part of `doctor` about what is around the databases: running processes and their versions, the last backup, mail, the
 * public address, and disk space.
 */
import type { StatsFs } from "node:fs";
import { statfs } from "node:fs/promises";
import { ok, problem, warning } from "../../core/check-result";
import type { Context } from "../../core/context";
import type { Base } from "../../core/control/bases";
import { listWorkers, runningVersions } from "../../core/control/fleet";
import { checkMail } from "../../core/mail";
import type { DoctorResult } from "./check-results";

/** A page that needs no session, of the console only. */
const PUBLIC_PAGE = "/signup";
/** Longest wait for that page, ms. */
const PAGE_TIMEOUT_MS = 10_000;
/** An older backup is reported. */
const MAX_BACKUP_AGE = "1 day";
/** A disk with less free space is reported, as a part of its size. */
const MIN_FREE = 0.1;

type FreeSpace = Pick<StatsFs, "bavail" | "blocks" | "bsize">;

export async function examineService(ctx: Context, bases: Base[]): Promise<DoctorResult[]> {
  return Promise.all([
    examineWorkers(ctx, bases),
    examineVersions(ctx),
    examineBackup(ctx),
    examineMail(ctx),
    examineAddress(ctx),
    freeSpace(ctx.config.dataDir).then(examineDisk),
  ]);
}

async function examineWorkers(ctx: Context, bases: Base[]): Promise<DoctorResult> {
  const workers = (await listWorkers(ctx.db)).filter(({ isAlive }) => isAlive);
  const synced = bases.filter(({ state }) => state === "active" || state === "starting").length;
  if (workers.length === 0 && synced > 0)
    return problem("workers", `No worker is alive, and ${synced} bases are not synced`, "Start a worker");
  const held = workers.reduce((sum, worker) => sum + worker.bases, 0);
  return ok("workers", `Workers that are alive: ${workers.length}; bases that they hold: ${held}`);
}

async function examineVersions({ db }: Context): Promise<DoctorResult> {
  const running = await runningVersions(db);
  const listed = running
    .map(({ role, version, processes }) => `${role} ${version} (${processes})`)
    .join(", ");
  if (new Set(running.map(({ version }) => version)).size > 1) {
    const remedy = "Replace the processes of the older version, unless an upgrade is under way";
    return warning("versions", `Processes of several versions are running: ${listed}`, remedy);
  }
  return ok("versions", running.length === 0 ? "No process is running" : `Running processes: ${listed}`);
}

/** By the clock of the control plane's server, which also recorded it. */
async function examineBackup({ db }: Context): Promise<DoctorResult> {
  const [last] = await db<{ at: Date; hours: number; isOld: boolean }[]>`
    select backed_up_at as at, floor(extract(epoch from now() - backed_up_at) / 3600)::int as hours,
      backed_up_at < now() - ${MAX_BACKUP_AGE}::interval as "isOld"
    from installation where backed_up_at is not null`;
  const remedy = 'Run the commands of "Backup and restore" in docs/operations.md each night';
  if (!last) return warning("backup", "No backup of the control plane is recorded", remedy);
  const message = `The control plane's last backup is ${last.hours} hours old (${last.at.toISOString()})`;
  return last.isOld ? warning("backup", message, remedy) : ok("backup", message);
}

async function examineMail({ config }: Context): Promise<DoctorResult> {
  if (config.smtpUrl === undefined)
    return ok(
      "mail",
      "SMTP_URL is not set: no mail is sent, and `account reset-link` prints links for people",
    );
  const reason = await checkMail(config);
  if (reason === undefined) return ok("mail", "The server of SMTP_URL accepts the login");
  return problem("mail", `The server of SMTP_URL: ${reason}`, "Start that server, or correct SMTP_URL");
}

/** From this machine, which a firewall may keep from the public address: so it is a warning only. */
async function examineAddress({ config }: Context): Promise<DoctorResult> {
  const { consoleUrl, isProduction } = config;
  const { hostname, protocol } = new URL(consoleUrl);
  if (["localhost", "127.0.0.1", "[::1]"].includes(hostname))
    return ok(
      "address",
      `${consoleUrl} is for people on this machine only; CONSOLE_URL sets the public address`,
    );
  if (isProduction && protocol !== "https:")
    return warning(
      "address",
      `${consoleUrl} is not encrypted`,
      "Put TLS in front, and set CONSOLE_URL to https",
    );
  try {
    const { status } = await fetch(`${consoleUrl}${PUBLIC_PAGE}`, {
      redirect: "manual",
      signal: AbortSignal.timeout(PAGE_TIMEOUT_MS),
    });
    if (status < 400) return ok("address", `${consoleUrl} answers`);
    return warning("address", `${consoleUrl} answers with status ${status}`, REMEDY);
  } catch (error) {
    return warning("address", `${consoleUrl} does not answer: ${(error as Error).message}`, REMEDY);
  }
}

const REMEDY = "Start a console, or correct CONSOLE_URL, DNS or the reverse proxy";

function freeSpace(folder: string): Promise<FreeSpace> {
  return statfs(folder).catch(() => statfs("."));
}

/** Of this machine. Postgres tells the disk of its server to superusers only. */
export function examineDisk({ bavail, blocks, bsize }: FreeSpace): DoctorResult {
  const gigabytes = ((bavail * bsize) / 1e9).toFixed(1);
  const message = `${gigabytes} GB are free on this machine; that of the Postgres servers is not visible from here`;
  if (bavail >= blocks * MIN_FREE) return ok("disk", message);
  return warning("disk", message, "Delete what is not needed, or extend the disk");
}
