/**
 * Compares clusters with what the control plane expects on them, and repairs the differences. This is all that is
 * needed after the control plane was restored from a dump.
 */
import { type CheckResult, problem, warning } from "../../check-result";
import type { Context } from "../../context";
import type { ServerUrl } from "../../external";
import {
  countForeign,
  databaseUrl,
  dropDatabase,
  dropLeftovers,
  droppedRelations,
  ensureConsoleRole,
  examineHosted,
  type HostedState,
  hasReplica,
  installReaders,
  installReplica,
  type Labelled,
  labelHosted,
  labelledDatabases,
  lockDownDatabase,
  type Provisioned,
  restoreHosted,
  restoreLimits,
  restoreSqlUserRole,
  type SqlUserRole,
  setPassword,
  setWritable,
  spareDatabases,
  viewsWithForeignCode,
} from "../../replica";
import { recordChange } from "../audit";
import { type Cluster, clusterAdminUrl, installationId } from "./clusters";
import { knownConsoleLogin } from "./console-role";
import {
  type Database,
  databaseAdminUrl,
  readerRoleOf,
  selectDatabases,
  setDatabaseWritable,
} from "./databases";
import { checkSqlUsers, endOfPause } from "./reconcile-sql-users";
import { repairable } from "./record-repair";
import { isControlServer } from "./same-server";
import { applyWriteDefaults } from "./sql-user-writes";
import { loginsOf, type SqlUserLogin } from "./sql-users";

type RepairContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;

/** A younger database may not be recorded yet, since it is created first. */
const ORPHAN_AFTER_MS = 10 * 60_000;

/** Returns all databases that hold replicas, with their schemas. */
export async function replicaDatabases({
  db,
}: Pick<Context, "db">): Promise<(Database & { schemas: string[] })[]> {
  return db<(Database & { schemas: string[] })[]>`
    select d.*, s.schemas from (${selectDatabases(db)}) as d, lateral (
      select array_agg(schema_name order by schema_name) as schemas from bases
      where database_id = d.id and state <> 'deleting') as s
    where s.schemas is not null order by d.id`;
}

/** @throws BasetideError `replica_unavailable`, `secret_unreadable` */
export async function checkReplicas(
  ctx: RepairContext,
  database: Database & { schemas: string[] },
): Promise<CheckResult[]> {
  if (database.clusterId === null) return checkExternal(ctx, database);
  const adminUrl = await clusterAdminUrl(ctx, database.clusterId);
  const [row] = await ctx.db<{ encrypted: string }[]>`
    select encrypted_password as encrypted from databases where id = ${database.id}`;
  const password = ctx.secrets.decrypt(row!.encrypted, `databases.password:${database.id}`);
  const { name, role, connections } = database;
  const hosted = { database: name, role, password, connections };
  const state = await examineHosted(adminUrl, hosted, database.schemas);
  const users = await loginsOf(ctx, database.id);
  const console = await knownConsoleLogin(ctx, database);
  const results = checkHosted(ctx, {
    ...database,
    adminUrl,
    hosted,
    state,
    users,
    console,
    installation: await installationId(ctx.db),
  });
  if (state.hasDatabase && state.hasRole)
    results.push(...(await checkSqlUsers(ctx, database, adminUrl, users, console)));
  if (!state.hasDatabase) return results;
  const installed = database.schemas.filter((schema) => !state.missingSchemas.includes(schema));
  results.push(...(await checkRelations(ctx, database, databaseUrl(adminUrl, name), installed)));
  results.push(...(await checkViews(databaseUrl(adminUrl, name), name, installed)));
  if (database.isWritable && (await isControlServer(ctx.db, adminUrl))) {
    results.push(writableOnControlServer(ctx, database));
  }
  return results;
}

/** Checks views also after the right to write was revoked, because objects that a customer created stay. */
async function checkViews(url: string, database: string, schemas: string[]): Promise<CheckResult[]> {
  const views = (await Promise.all(schemas.map((schema) => viewsWithForeignCode(url, schema)))).flat();
  return views.map(({ view, owner, code }) =>
    warning(
      "replica",
      `${database}: the view ${view} uses ${code}, which Basetide did not create, so the next rebuild of its table drops the view`,
      `As ${owner}, create the view without it, or run the statements that _sync_issues will contain after the rebuild`,
    ),
  );
}

function writableOnControlServer(ctx: RepairContext, database: Database): CheckResult {
  const message = `${database.name}: its customer may write on the server of the control plane`;
  return {
    ...problem("replica", message, "makes it read-only; the objects that the customer created stay"),
    fix: async () => void (await setDatabaseWritable(ctx, database, false)),
  };
}

/** Finds databases of this installation on the cluster that the control plane does not know. */
export async function orphansOn(ctx: RepairContext, cluster: Cluster): Promise<CheckResult[]> {
  const adminUrl = await clusterAdminUrl(ctx, cluster.id);
  const installation = await installationId(ctx.db);
  const labelled = await labelledDatabases(adminUrl, installation);
  // Of all clusters, because two of them may be one server.
  const rows = await ctx.db<{ name: string }[]>`select name from databases where cluster_id is not null`;
  const spares = await spareDatabases(adminUrl, installation);
  const known = new Set([...rows.map(({ name }) => name), ...spares.map(({ database }) => database)]);
  const orphans = labelled.filter(
    ({ database, madeMsAgo }) => !known.has(database) && madeMsAgo > ORPHAN_AFTER_MS,
  );
  return Promise.all(orphans.map((orphan) => orphanResult(ctx, cluster, adminUrl, orphan)));
}

interface Examined extends Database {
  schemas: string[];
  adminUrl: string;
  hosted: Provisioned;
  state: HostedState;
  users: SqlUserLogin[];
  console: SqlUserRole | undefined;
  installation: string;
}

function checkHosted(ctx: RepairContext, examined: Examined): CheckResult[] {
  const { adminUrl, hosted, state, users, console, installation, schemas, isWritable } = examined;
  const name = hosted.database;
  const url = databaseUrl(adminUrl, name);
  const results: CheckResult[] = [];
  const add = (
    message: string,
    remedy: string,
    work: () => Promise<void>,
    result: typeof problem | typeof warning = problem,
  ) => results.push(repairable(ctx, examined, message, remedy, work, result));

  if (!state.hasDatabase || !state.hasRole) {
    const what = [state.hasDatabase ? "" : "database", state.hasRole ? "" : "role"]
      .filter(Boolean)
      .join(" and ");
    add(`its ${what} does not exist`, "creates it again under the same names, and syncs it", async () => {
      await restoreHosted(adminUrl, hosted, installation);
      await install(ctx, examined, url, schemas);
      for (const user of users) await restoreSqlUserRole(adminUrl, { ...hosted, isWritable }, user);
      if (console) await ensureConsoleRole(adminUrl, { ...hosted, isWritable }, console.password);
    });
    return results;
  }
  if (state.missingSchemas.length > 0) {
    add(
      `schema ${state.missingSchemas.join(", ")} does not exist`,
      "creates it again, and syncs it",
      async () => {
        for (const schema of state.missingSchemas) await dropLeftovers(url, schema);
        await install(ctx, examined, url, state.missingSchemas);
      },
    );
  }
  if (!state.hasReaders) {
    add(
      "its roles are not members of a role without a login",
      "creates that role, and makes them its members",
      () => installReaders(adminUrl, hosted),
    );
  }
  if (!state.isLockedDown) {
    add("other roles may connect, or call functions that write", "revokes these rights", () =>
      lockDownDatabase(adminUrl, hosted),
    );
  }
  if (!state.isLimited) {
    add("its role lacks the limits of a customer's role", "sets the limits", () =>
      restoreLimits(adminUrl, hosted),
    );
  }
  if (state.pausedUntil) {
    const until = state.pausedUntil.toISOString();
    const message = `${name}: its role consumed transaction ids too fast and may not connect until ${until}`;
    results.push(warning("replica", message, endOfPause(examined)));
  }
  if (!state.takesPassword) {
    add("the server does not accept the password that its owner sees", "sets that password again", () =>
      setPassword(adminUrl, hosted.role, hosted.password),
    );
  }
  const differing = schemas.filter(
    (schema) =>
      !state.missingSchemas.includes(schema) && state.writableSchemas.includes(schema) !== isWritable,
  );
  if (differing.length > 0) {
    add(
      `is ${isWritable ? "not writable" : "writable"}, unlike its setting in the control plane`,
      "applies the setting",
      async () => {
        await setAll(url, hosted.role, differing, isWritable);
        await applyWriteDefaults(ctx, examined);
      },
    );
  }
  if (state.installation !== installation) {
    const work = () => labelHosted(adminUrl, name, installation);
    add("is not labeled as a database of this installation", "labels it", work, warning);
  }
  return results;
}

async function checkExternal(
  ctx: RepairContext,
  database: Database & { schemas: string[] },
): Promise<CheckResult[]> {
  const url = await databaseAdminUrl(ctx, database);
  const missing: string[] = [];
  for (const schema of database.schemas) if (!(await hasReplica(url, schema))) missing.push(schema);
  const installed = database.schemas.filter((schema) => !missing.includes(schema));
  const dropped = await checkRelations(ctx, database, url, installed);
  if (missing.length === 0) return dropped;
  const named = { ...database, name: `${database.host}/${database.name}` };
  const message = `schema ${missing.join(", ")} does not exist`;
  const restore = () => install(ctx, database, url, missing);
  return [repairable(ctx, named, message, "creates it again, and syncs it", restore), ...dropped];
}

/** Finds dropped objects of installed replicas. A worker restores them within minutes, too, if the base syncs. */
async function checkRelations(
  ctx: RepairContext,
  database: Database,
  url: ServerUrl,
  schemas: string[],
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const schema of schemas) {
    const dropped = await droppedRelations(url, schema);
    if (dropped.length === 0) continue;
    const message = `dropped outside Basetide: ${dropped.join(", ")}`;
    const restore = () => install(ctx, database, url, [schema]);
    results.push(repairable(ctx, database, message, "creates it again, and syncs it", restore));
  }
  return results;
}

async function orphanResult(
  ctx: RepairContext,
  cluster: Cluster,
  adminUrl: string,
  orphan: Labelled,
): Promise<CheckResult> {
  const { database, role, inUse } = orphan;
  const message = `${cluster.name}: ${database} belongs to no base`;
  const foreign = await countForeign(adminUrl, orphan);
  if (foreign > 0) {
    const remedy = `It contains ${foreign} objects that a customer created. Save them, then drop the database manually`;
    return warning("orphan", message, remedy);
  }
  if (inUse > 0) {
    const remedy = "A Basetide process is connected to it. Stop the processes that use another control plane";
    return warning("orphan", message, remedy);
  }
  return {
    ...warning("orphan", message, "drops it: it is a copy, and connecting the base again creates a new one"),
    async fix() {
      await dropDatabase(adminUrl, database, role ?? database);
      const details = { cluster: cluster.name, database, what: "belongs to no base" };
      await recordChange(ctx.db, ctx.actor, { accountId: null, action: "service.repaired", details });
    },
  };
}

/** Installs what a replica needs, and requests a sync of its bases. */
async function install(
  ctx: RepairContext,
  database: Database,
  url: ServerUrl,
  schemas: string[],
): Promise<void> {
  const { id, role, isWritable } = database;
  for (const schema of schemas) await installReplica(url, { schema, role: readerRoleOf(database) });
  // Only databases on our clusters can be writable.
  if (isWritable && typeof url === "string") await setAll(url, role, schemas, true);
  await ctx.db`
    update bases set resync_requested_at = now(), sql_writes_installed = null
    where database_id = ${id} and schema_name = any (${schemas})`;
}

async function setAll(url: string, role: string, schemas: string[], isWritable: boolean): Promise<void> {
  for (const schema of schemas) await setWritable(url, role, schema, isWritable);
}
