/**
 * `doctor`: looks at everything that a process needs, and says what is wrong and what to do about it.
 *
 * A problem is the operator's to mend, and makes the exit code 1; a warning is somebody else's, or not urgent.
 */
import type { Context } from "../../core/context";
import {
  type Ailment,
  ailmentsOf,
  asControlError,
  type Base,
  type Cluster,
  clusterAdminUrl,
  clusterTroubles,
  examineSeals,
  finishDeletions,
  listBases,
  listClusters,
  orphansOn,
  pendingMigrations,
  replicaDatabases,
} from "../../core/control";
import { asBasetideError, isBasetideError } from "../../core/errors";
import { type Finding, inBatches, type Mendable, ok, problem, readable, warning } from "./findings";

export async function examine(ctx: Context): Promise<Mendable[]> {
  const control = await examineControl(ctx);
  if (control.status !== "ok") return [control];
  const migrations = await examineMigrations(ctx);
  if (migrations.status !== "ok") return [control, migrations];
  const [bases, clusters] = [await listBases(ctx.db), await listClusters(ctx.db)];
  return [
    control,
    migrations,
    await examineSecrets(ctx),
    ...(await examineClusters(ctx, clusters)),
    ...(await examineReplicas(ctx)),
    ...(await examineOrphans(ctx, clusters)),
    ...bases.flatMap((base) => examineBase(ctx, base)),
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

async function examineSecrets(ctx: Context): Promise<Finding> {
  const { readable, previous, unreadable } = await examineSeals(ctx);
  if (unreadable > 0) {
    const remedy = "Set SECRET_KEY to the key that they were saved with, or add that to SECRET_KEY_PREVIOUS";
    return problem("secrets", `${unreadable} of ${unreadable + readable} cannot be read`, remedy);
  }
  if (previous > 0) {
    const message = `${previous} of ${readable} are sealed with a key of SECRET_KEY_PREVIOUS`;
    return warning("secrets", message, "Run `secrets rotate`, once every process runs with this SECRET_KEY");
  }
  const { length } = ctx.config.previousSecretKeys;
  const isOver = length === 0 ? "" : ", with SECRET_KEY: SECRET_KEY_PREVIOUS can go";
  return ok("secrets", `All ${readable} can be read${isOver}`);
}

async function examineClusters(ctx: Context, clusters: Cluster[]): Promise<Finding[]> {
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

/** The databases that replicas live in: are they there, closed to others, and as they are kept here? */
async function examineReplicas(ctx: Context): Promise<Mendable[]> {
  const databases = await replicaDatabases(ctx);
  const findings = await inBatches(databases, async (database) => {
    try {
      const ailments = await readable(() => ailmentsOf(ctx, database));
      return (ailments ?? []).map((ailment) => findingOf("replica", ailment));
    } catch (error) {
      const remedy = "Start its server, or give the base's owner a new database";
      return [problem("replica", `${database.name}: ${asBasetideError(error).message}`, remedy)];
    }
  });
  const found = findings.flat();
  return found.length > 0 ? found : [ok("replica", `${databases.length} databases are as they are to be`)];
}

/** What is left on the clusters of bases that the control plane does not know: it was restored, say. */
async function examineOrphans(ctx: Context, clusters: Cluster[]): Promise<Mendable[]> {
  const findings = await inBatches(clusters, async (cluster) => {
    try {
      const orphans = await readable(() => orphansOn(ctx, cluster));
      return (orphans ?? []).map((ailment) => findingOf("orphan", ailment));
    } catch (error) {
      // A cluster that cannot be reached is a finding already.
      if (isBasetideError(error, "replica_unavailable")) return [];
      throw error;
    }
  });
  return findings.flat();
}

function findingOf(check: Finding["check"], { severity, message, remedy, mend }: Ailment): Mendable {
  if (!mend) return { check, status: severity, message, remedy };
  return { check, status: severity, message, remedy: `\`doctor --fix\`: ${remedy}`, mend };
}

function examineBase(ctx: Context, base: Base): Mendable[] {
  if (base.state === "deleting") {
    const remedy = "`doctor --fix`: deleted to the end; so does the next start of a console";
    const mend = async () => void (await finishDeletions(ctx, () => listBases(ctx.db)));
    return [{ ...warning("base", `${base.id} is not yet deleted`, remedy), mend }];
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
