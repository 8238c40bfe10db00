/**
 * `doctor`: looks at everything that a process needs, and says what is wrong and what to do about it.
 *
 * A problem is the operator's to mend, and makes the exit code 1; a warning is somebody else's, or not urgent.
 */
import type { Context } from "../../core/context";
import {
  asControlError,
  type Base,
  clusterAdminUrl,
  clusterTroubles,
  listBases,
  listClusters,
  openApiKey,
  pendingMigrations,
  replicaTarget,
  replicaTrouble,
} from "../../core/control";
import { isBasetideError } from "../../core/errors";

/** Databases looked at at once. */
const PARALLEL = 8;

export interface Finding {
  check: "control_plane" | "migrations" | "secrets" | "cluster" | "replica" | "base";
  status: "ok" | "warning" | "problem";
  message: string;
  remedy: string | null;
}

export async function examine(ctx: Context): Promise<Finding[]> {
  const control = await examineControl(ctx);
  if (control.status !== "ok") return [control];
  const migrations = await examineMigrations(ctx);
  if (migrations.status !== "ok") return [control, migrations];
  const bases = await listBases(ctx.db);
  return [
    control,
    migrations,
    await examineSecrets(ctx, bases),
    ...(await examineClusters(ctx)),
    ...(await examineReplicas(ctx, bases)),
    ...bases.flatMap(examineBase),
  ];
}

async function examineControl(ctx: Context): Promise<Finding> {
  try {
    const [row] = await ctx.db<{ version: string }[]>`select current_setting('server_version') as version`;
    return ok("control_plane", `Postgres ${row?.version}`);
  } catch (error) {
    const cause = asControlError(error).cause;
    const reason = cause instanceof Error ? cause.message : String(cause ?? error);
    return problem("control_plane", reason, "Start the server of DATABASE_URL, or correct the variable");
  }
}

async function examineMigrations(ctx: Context): Promise<Finding> {
  const pending = await pendingMigrations(ctx.db);
  if (pending.length === 0) return ok("migrations", "All have run");
  const remedy = "Start any process of this version: it migrates first";
  return problem("migrations", `Not run: ${pending.join(", ")}`, remedy);
}

/** A base's key and its database's password stand for all: SECRET_KEY seals everything. */
async function examineSecrets(ctx: Context, bases: Base[]): Promise<Finding> {
  const clusters = await listClusters(ctx.db);
  const opened = await Promise.all([
    ...clusters.map((cluster) => isReadable(() => clusterAdminUrl(ctx, cluster.id))),
    ...bases.map((base) => isReadable(() => openApiKey(ctx, base))),
  ]);
  const unreadable = opened.filter((isGood) => !isGood).length;
  if (unreadable === 0) return ok("secrets", `All ${opened.length} can be read`);
  const remedy = "Set SECRET_KEY to the key that they were saved with";
  return problem("secrets", `${unreadable} of ${opened.length} cannot be read`, remedy);
}

async function isReadable(open: () => Promise<string>): Promise<boolean> {
  try {
    await open();
    return true;
  } catch (error) {
    if (isBasetideError(error, "secret_unreadable")) return false;
    throw error;
  }
}

async function examineClusters(ctx: Context): Promise<Finding[]> {
  const clusters = await listClusters(ctx.db);
  if (!clusters.some((cluster) => cluster.state === "active")) {
    const remedy = "Add one with `cluster add`, or start a console: it registers REPLICA_URL";
    return [problem("cluster", "No cluster takes new databases", remedy)];
  }
  const findings = await inBatches(clusters, async (cluster) => {
    const adminUrl = await readable(() => clusterAdminUrl(ctx, cluster.id));
    if (adminUrl === null) return [];
    const troubles = await clusterTroubles(adminUrl);
    if (troubles.length === 0)
      return [ok("cluster", `${cluster.name}: reachable, may create databases and roles`)];
    return troubles.map(({ message, remedy }) => problem("cluster", `${cluster.name}: ${message}`, remedy));
  });
  return findings.flat();
}

async function examineReplicas(ctx: Context, bases: Base[]): Promise<Finding[]> {
  const findings = await inBatches(bases, async (base) => {
    if (base.state === "deleting") return [];
    const target = await readable(() => replicaTarget(ctx, base));
    const trouble = target && (await replicaTrouble(target.url, target.schema));
    if (!trouble) return [];
    const remedy = "Start its server, or give the base's owner a new database";
    return [problem("replica", `${base.id} (${base.database.name}): ${trouble}`, remedy)];
  });
  const found = findings.flat();
  return found.length > 0 ? found : [ok("replica", `${bases.length} reachable`)];
}

function examineBase(base: Base): Finding[] {
  if (base.state === "deleting") {
    return [
      warning("base", `${base.id} is not yet deleted`, "Restart a console: it ends what was interrupted"),
    ];
  }
  if (!base.error) return [];
  const remedy = base.state === "needs_attention" ? "Its owner has to act" : "It is tried again by itself";
  return [
    warning(
      "base",
      `${base.id} fails since ${base.error.since.toISOString()}: ${base.error.message}`,
      remedy,
    ),
  ];
}

/** Null for a secret that cannot be read: that is a finding of its own already. */
async function readable<T>(open: () => Promise<T>): Promise<T | null> {
  try {
    return await open();
  } catch (error) {
    if (isBasetideError(error, "secret_unreadable")) return null;
    throw error;
  }
}

async function inBatches<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += PARALLEL) {
    results.push(...(await Promise.all(items.slice(start, start + PARALLEL).map(work))));
  }
  return results;
}

function ok(check: Finding["check"], message: string): Finding {
  return { check, status: "ok", message, remedy: null };
}

function warning(check: Finding["check"], message: string, remedy: string): Finding {
  return { check, status: "warning", message, remedy };
}

function problem(check: Finding["check"], message: string, remedy: string): Finding {
  return { check, status: "problem", message, remedy };
}
