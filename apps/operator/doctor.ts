/**
 * `doctor`: checks everything that a process needs, and prints each problem with its remedy.
 *
 * A problem is for the operator to fix, and sets the exit code to 1. A warning is for another person, or is not urgent.
 */
import { type CheckResult, isProblem, ok, problem, warning } from "../../core/check-result";
import type { Context } from "../../core/context";
import { type Base, finishDeletions, listBases } from "../../core/control/bases";
import { type QuarantinedTask, quarantine } from "../../core/control/jobs";
import {
  type Cluster,
  checkReplicas,
  clusterAdminUrl,
  type Database,
  describeServer,
  inspectCluster,
  inspectKnown,
  listClusters,
  orphansOn,
  replicaDatabases,
} from "../../core/control/placement";
import { examineEncryption, inspectControl, pendingMigrations } from "../../core/control/setup";
import { asBasetideError, isBasetideError } from "../../core/errors";
import { asControlError } from "../../core/postgres";
import { type DoctorResult, inBatches, readable } from "./check-results";
import { examineService } from "./doctor-service";

export async function examine(ctx: Context): Promise<DoctorResult[]> {
  const control = await examineControl(ctx);
  if (control.some(isProblem)) return control;
  const migrations = await examineMigrations(ctx);
  if (migrations.severity !== "ok") return [...control, migrations];
  const [bases, clusters] = [await listBases(ctx.db), await listClusters(ctx.db)];
  const { baseIds, tasks, repairs } = await quarantine(ctx.db);
  return [
    ...control,
    migrations,
    await examineSecrets(ctx),
    ...(await examineService(ctx, bases)),
    ...(await examineClusters(ctx, clusters)),
    ...(await examineReplicas(ctx, bases, new Set(baseIds))),
    ...(await examineOrphans(ctx, clusters)),
    ...tasks.map(examineTask),
    ...repairs.map(examineRepairs),
    ...bases.flatMap((base) => examineBase(ctx, base, tasks)),
  ];
}

async function examineControl(ctx: Context): Promise<DoctorResult[]> {
  try {
    const { summary, checks } = await inspectControl(ctx.config.databaseUrl!);
    const found = checks.flatMap((check) => unwell("control_plane", "", check));
    if (found.some(isProblem)) return found;
    const [row] = await ctx.db<{ role: string; powers: string[] }[]>`
      select rolname as role,
        array_remove(array[case when rolsuper then 'SUPERUSER' end, case when rolcreatedb then 'CREATEDB' end,
          case when rolcreaterole then 'CREATEROLE' end], null) as powers
      from pg_roles where rolname = current_user`;
    if (row!.powers.length === 0) return [ok("control_plane", summary), ...found];
    const message = `${summary}; the role ${row!.role} has ${row!.powers.join(", ")}, which it does not need`;
    const remedy = "Run `operator server prepare control`, and use its role in DATABASE_URL";
    return [warning("control_plane", message, remedy), ...found];
  } catch (error) {
    const cause = asControlError(error).cause;
    const reason = cause instanceof Error ? cause.message : String(cause ?? error);
    return [problem("control_plane", reason, "Start the server of DATABASE_URL, or correct the variable")];
  }
}

/** The result of a check, unless it is ok. @param name of the thing that was checked, with a colon */
function unwell(check: DoctorResult["check"], name: string, result: CheckResult): DoctorResult[] {
  const { severity, message, remedy, fix } = result;
  if (severity === "ok") return [];
  const next = fix ? `\`doctor --fix\` ${remedy}` : remedy;
  return [{ check, severity, message: `${name}${message}`, remedy: next, fix }];
}

async function examineMigrations(ctx: Context): Promise<DoctorResult> {
  const pending = await pendingMigrations(ctx.db);
  if (pending.length === 0) return ok("migrations", "All migrations have run");
  const remedy = "Run `server migrate`, or start any process of this version";
  return problem("migrations", `Not run: ${pending.join(", ")}`, remedy);
}

async function examineSecrets(ctx: Context): Promise<DoctorResult> {
  const { readable, previous, unreadable } = await examineEncryption(ctx);
  if (unreadable > 0) {
    const remedy = "Set SECRET_KEY to the key that encrypted them, or add that key to SECRET_KEY_PREVIOUS";
    return problem(
      "secrets",
      `${unreadable} of ${unreadable + readable} encrypted values cannot be decrypted`,
      remedy,
    );
  }
  if (previous > 0) {
    const message = `${previous} of ${readable} encrypted values use a key of SECRET_KEY_PREVIOUS`;
    return warning("secrets", message, "Run `secrets rotate` when all processes run with this SECRET_KEY");
  }
  const { length } = ctx.config.previousSecretKeys;
  const isOver = length === 0 ? "" : " with SECRET_KEY; SECRET_KEY_PREVIOUS can be removed";
  return ok("secrets", `All ${readable} encrypted values can be read${isOver}`);
}

async function examineClusters(ctx: Context, clusters: Cluster[]): Promise<DoctorResult[]> {
  if (!clusters.some((cluster) => cluster.state === "active")) {
    const remedy = "Add a cluster with `cluster add`, or start a console, which registers REPLICA_URL";
    return [problem("cluster", "No cluster accepts new databases", remedy)];
  }
  const results = await inBatches(clusters, async (cluster) => {
    const adminUrl = await readable(() => clusterAdminUrl(ctx, cluster.id));
    if (adminUrl === null) return [];
    const { summary, results } = await inspectCluster(adminUrl);
    if (results.length === 0)
      return [ok("cluster", `${cluster.name}: ${summary}; may create databases and roles`)];
    return results.flatMap((result) => unwell("cluster", `${cluster.name}: `, result));
  });
  return results.flat();
}

/** Checks the databases of replicas: that they exist, are locked down, and are as this version creates them. */
async function examineReplicas(
  ctx: Context,
  bases: Base[],
  quarantined: Set<string>,
): Promise<DoctorResult[]> {
  // The server of a quarantined base would do to this process what it has done to others.
  const hostile = new Set(bases.filter(({ id }) => quarantined.has(id)).map(({ database }) => database.id));
  const isSafe = ({ id, clusterId }: Database) => clusterId !== null || !hostile.has(id);
  const databases = (await replicaDatabases(ctx)).filter(isSafe);
  const results = await inBatches(databases, async (database) => {
    try {
      const results = await readable(() => checkReplicas(ctx, database));
      const found = (results ?? []).flatMap((result) => unwell("replica", "", result));
      return database.clusterId === null ? [...(await examineExternal(ctx, database)), ...found] : found;
    } catch (error) {
      const remedy = "Start its server, or give the base's owner a new database";
      return [problem("replica", `${database.name}: ${asBasetideError(error).message}`, remedy)];
    }
  });
  const found = results.flat();
  return found.length > 0 ? found : [ok("replica", `${databases.length} databases are in order`)];
}

/** Checks a customer's own server in the same way as when it was connected. */
async function examineExternal(ctx: Context, database: Database): Promise<DoctorResult[]> {
  const inspection = await readable(() => inspectKnown(ctx, database));
  if (inspection === null) return [];
  const { report, checks } = inspection;
  const name = `${database.name} on ${database.host}: `;
  const summary = report === undefined ? [] : [ok("replica", `${name}${describeServer(report)}`)];
  // The server's owner must fix it; the sync retries by itself.
  return [...summary, ...checks.flatMap((check) => unwell("replica", name, check)).map(asWarning)];
}

function asWarning(result: DoctorResult): DoctorResult {
  return { ...result, severity: "warning" };
}

/** Finds databases on the clusters whose base the control plane does not know, for example after it was restored. */
async function examineOrphans(ctx: Context, clusters: Cluster[]): Promise<DoctorResult[]> {
  const results = await inBatches(clusters, async (cluster) => {
    try {
      const orphans = await readable(() => orphansOn(ctx, cluster));
      return (orphans ?? []).flatMap((result) => unwell("orphan", "", result));
    } catch (error) {
      // The check of clusters reports a cluster that cannot be reached.
      if (isBasetideError(error, "replica_unavailable")) return [];
      throw error;
    }
  });
  return results.flat();
}

function examineTask({ task, subject, triedAt }: QuarantinedTask): DoctorResult {
  const what = { deletion: "deletion", move: "end of a move", stray: "removal of an unused database" }[task];
  const message = `${subject}: the ${what} crashed three processes, the last at ${triedAt.toISOString()}, and is quarantined`;
  const remedy =
    task === "deletion"
      ? `Run \`base delete ${subject} --force\`: it does not contact Airtable or a database that the customer hosts`
      : `Look for "crashed" in the logs of that time, then run \`base retry ${subject}\``;
  return problem("quarantine", message, remedy);
}

function examineRepairs({ baseId, records }: { baseId: string; records: number }): DoctorResult {
  const message = `${baseId}: the repair of ${records} written records crashed three proxies; it is retried with increasing delays`;
  return warning(
    "quarantine",
    message,
    "Check the base's database; the next full check also writes the records",
  );
}

function examineBase(ctx: Context, base: Base, tasks: QuarantinedTask[]): DoctorResult[] {
  if (base.state === "deleting") {
    if (tasks.some(({ task, subject }) => task === "deletion" && subject === base.id)) return [];
    const remedy = "`doctor --fix` finishes the deletion; a console also does so within minutes";
    const fix = async () => void (await finishDeletions(ctx, () => listBases(ctx.db)));
    return [{ ...warning("base", `${base.id} has not been deleted completely`, remedy), fix }];
  }
  if (base.state === "moving") {
    const remedy = "Repeat `operator account move` until it is complete, or end it with --abort";
    return [warning("base", `${base.id} is being moved to another control plane, and is not served`, remedy)];
  }
  if (!base.error) return [];
  const remedy =
    base.state === "needs_attention" && base.error.code !== "sync_crashed"
      ? "Its owner must act"
      : "It is retried automatically";
  return [
    warning(
      "base",
      `${base.id} has been failing since ${base.error.since.toISOString()}: ${base.error.message}`,
      remedy,
    ),
  ];
}
