/**
 * Moves a base to another cluster: runs a first sync into a new database there, while the old database is still synced
 * and read. Then points the base at the new database, and drops the old one.
 *
 * I1. Records that clients write through the proxy during the move are read again into the new replica: before the
 * base switches to it, and afterwards for as long as a write to the old one may still be running.
 * I7. `bases.move_database_id` always names the database that must be dropped, however the move ends. The next move of
 * the base, its deletion, or the next start of a console drops it.
 */

import { wait } from "../../async";
import type { Context } from "../../context";
import { BasetideError, conflict, isBasetideError } from "../../errors";
import { type RateLimiter, syncShare } from "../../limiter";
import {
  claimEpoch,
  copyNames,
  copyOutbox,
  openReplica,
  type Replica,
  type ReplicaTarget,
  removeWrites,
  takeReadVersion,
} from "../../replica";
import type { Platform } from "../../source";
import { platformById } from "../../source";
import type { Reader } from "../../sync/engine";
import { syncBase } from "../../sync/engine";
import { attachmentUrlsOf } from "../../sync/lease";
import { BaseCache, ReadVersionSource } from "../../sync/state";
import { recordChange } from "../audit";
import {
  attachmentSigner,
  type Base,
  connectOwn,
  fence,
  getBase,
  installedWrites,
  type Progress,
  replicaTarget,
  restoreSqlWrites,
  sourceAccess,
  switchSqlWrites,
} from "../bases";
import { quotaKeyOf } from "../budgets";
import { recordFeedGapOfBase } from "../feeds";
import {
  applySqlUserWrites,
  asMover,
  clusterByName,
  copySqlUsers,
  createHostedDatabase,
  type Database,
  endMove,
  getDatabase,
  removeUnusedDatabase,
} from "../placement";
import { copyWrites, type LoadSigner, type WrittenElsewhere, writtenElsewhere } from "./copy-writes";

const COPY_PAUSE_MS = 250;
/** Attempts to drop the views that are written to: each waits for transactions, too. */
const MOST_TRIES = 100;

export interface MoveContext extends Context {
  limiter: RateLimiter;
  platforms: Platform[];
}

interface MoveOptions {
  signal: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /**
   * The longest time for which a write to the old replica may still be running after the base has switched, ms.
   * Defaults to one timeout of the source, and another one until the write is shown.
   */
  graceMs?: number;
}

/**
 * @returns the base after the move, with another database and therefore other credentials
 * @throws BasetideError `conflict` if it cannot be moved there or is being moved already; `not_found`; the error that
 *   prevented the first sync from completing. The base then stays where it was, and the new database is removed
 */
export async function moveBase(
  ctx: MoveContext,
  baseId: string,
  clusterName: string,
  options: MoveOptions,
): Promise<Base> {
  const moved = await asMover(ctx.db, baseId, () => moveLocked(ctx, baseId, clusterName, options));
  if (!moved) throw conflict("The base is already being moved");
  return moved.result;
}

async function moveLocked(
  ctx: MoveContext,
  baseId: string,
  clusterName: string,
  options: MoveOptions,
): Promise<Base> {
  const base = await getBase(ctx.db, baseId);
  await endEarlierMove(ctx, base);
  const from = await getDatabase(ctx.db, base.database.id);
  const to = await prepare(ctx, base, from, clusterName);
  const releases = new AsyncDisposableStack();
  const open = async (database: Database) => {
    const replica = openReplica(await replicaTarget(ctx, placed(base, database)));
    releases.defer(() => replica.close());
    return replica;
  };
  let isMoved = false;
  try {
    const [source, target] = [await open(from), await open(to)];
    const written = releases.use(await writtenElsewhere(source));
    const reader = await readerFor(ctx, base, target, options.signal);
    const epoch = await claimEpoch(target);
    await copyNames(source, target, epoch);
    await firstSync(ctx, base, target, epoch, reader, options);
    const loadSigner = () => attachmentSigner(ctx, baseId);
    await copyWrites(target, reader, await written.take(), loadSigner);
    await copySqlUsers(ctx, from, to);
    const [oldPlace, newPlace] = [await replicaTarget(ctx, base), await replicaTarget(ctx, placed(base, to))];
    if (base.settings.sqlWrites) await switchSqlWrites(ctx, base, newPlace, base.settings);
    const isQueued = base.settings.sqlWrites && base.settings.sqlWritesQueued;
    if (isQueued) {
      releases.defer(() => (isMoved ? undefined : allowWritesAgain(ctx, base)));
      await ctx.db`update bases set sql_writes_installed = null where id = ${baseId}`;
      // What is committed from now on could be in neither database.
      await closeWrites(oldPlace, options.signal);
      await copyOutbox(oldPlace, newPlace);
    }
    await pointAt(ctx, base, from, to);
    isMoved = true;
    await applySqlUserWrites(ctx, to);
    await fence(ctx, from, base.database.schema);
    const graceMs = options.graceMs ?? 2 * ctx.config.upstreamTimeoutMs;
    await copyLateWrites(target, reader, written, loadSigner, graceMs);
  } finally {
    await releases.disposeAsync();
    await endMove(ctx, inSchema(base), isMoved ? from.id : to.id).catch((error: unknown) => {
      ctx.log.warn({ baseId, error }, "dropping the database of a move failed");
    });
  }
  ctx.log.info({ baseId, cluster: clusterName }, "base moved");
  return getBase(ctx.db, baseId);
}

/** @throws BasetideError `replica_busy` if customers' transactions hold the views for too long, `sync_stopped` */
async function closeWrites(target: ReplicaTarget, signal: AbortSignal): Promise<void> {
  for (let tries = 1; tries < MOST_TRIES; tries++) {
    try {
      return await removeWrites(target);
    } catch (error) {
      if (!isBasetideError(error, "replica_busy")) throw error;
      await wait(COPY_PAUSE_MS, signal);
    }
  }
  await removeWrites(target);
}

/** Never fails: a console tries it again. */
async function allowWritesAgain(ctx: MoveContext, base: Base): Promise<void> {
  try {
    await restoreSqlWrites(ctx, base);
  } catch (error) {
    ctx.log.warn(
      { baseId: base.id, error },
      "SQL writes could not be turned on again after a move that failed",
    );
  }
}

async function endEarlierMove(ctx: MoveContext, base: Base): Promise<void> {
  const [row] = await ctx.db<{ id: string | null }[]>`
    select move_database_id as id from bases where id = ${base.id}`;
  if (row?.id) await endMove(ctx, inSchema(base), row.id);
}

function inSchema(base: Base): { id: string; schema: string } {
  return { id: base.id, schema: base.database.schema };
}

/** Creates the new database and records it. @throws BasetideError `conflict` */
async function prepare(ctx: MoveContext, base: Base, from: Database, clusterName: string): Promise<Database> {
  const cluster = await clusterByName(ctx.db, clusterName);
  if (base.state === "deleting") throw conflict("The base is being deleted");
  if (base.state === "moving") throw conflict("The base is being moved to another control plane");
  if (from.clusterId === null) {
    throw conflict("The base is in a database that the customer hosts");
  }
  if (from.isWritable) {
    throw conflict(
      `The database ${from.name} is writable, and the customer's own objects in it would be lost. Make it read-only first`,
    );
  }
  if (cluster.id === from.clusterId) {
    throw conflict(`The base is already on the cluster "${clusterName}"`);
  }
  if (cluster.state !== "active") {
    throw conflict(`The cluster "${clusterName}" accepts no new databases`);
  }
  const to = await createHostedDatabase(ctx, base.accountId, base.database.schema, {
    cluster,
    connections: from.connections,
  });
  const [recorded] = await ctx.db`
    update bases set move_database_id = ${to.id}
    where id = ${base.id} and state not in ('moving', 'deleting') and move_database_id is null returning id`;
  if (recorded) return to;
  await removeUnusedDatabase(ctx, to.id);
  throw conflict("The base is being deleted");
}

function placed(base: Base, { id, name, host, port }: Database): Base {
  return { ...base, database: { id, name, host, port, schema: base.database.schema } };
}

async function readerFor(
  ctx: MoveContext,
  base: Base,
  target: Replica,
  signal: AbortSignal,
): Promise<Omit<Reader, "counts" | "onFirstRequest">> {
  return {
    connection: connectOwn(ctx, platformById(ctx.platforms, base.platform), await sourceAccess(ctx, base.id)),
    sourceBaseId: base.sourceBaseId,
    limiter: ctx.limiter,
    quotaKey: quotaKeyOf(base),
    // The old replica is still being synced meanwhile.
    share: () => syncShare(quotaKeyOf(base), false),
    readVersions: new ReadVersionSource(() => takeReadVersion(target)),
    log: ctx.log.child({ baseId: base.id }),
    stop: signal,
    kill: signal,
  };
}

/** @throws BasetideError the reason why the sync did not complete */
async function firstSync(
  ctx: MoveContext,
  base: Base,
  target: Replica,
  epoch: number,
  reader: Omit<Reader, "counts" | "onFirstRequest">,
  { onProgress = () => {} }: MoveOptions,
): Promise<void> {
  const cache = new BaseCache(epoch);
  cache.attachmentSigner = await attachmentSigner(ctx, base.id);
  const report = await syncBase({
    base: { ...base, sync: null, tables: [] },
    replica: target,
    epoch,
    cache,
    attachmentUrls: attachmentUrlsOf(ctx.config, base),
    reader,
    schemaPollMs: ctx.config.schemaPollMs,
    isForced: false,
    onProgress,
  });
  if (report.error) throw new BasetideError(report.error.code, report.error.message);
}

/** Points the base at `to`. @throws BasetideError `conflict` when it is being deleted, or `from` is writable by now */
async function pointAt(ctx: MoveContext, base: Base, from: Database, to: Database): Promise<void> {
  await ctx.db.begin(async (tx) => {
    const [moved] = await tx`
      update bases set database_id = ${to.id}, move_database_id = ${from.id}, replica_identity = null,
        sql_writes_installed = ${installedWrites(ctx, base.settings)}
      where id = ${base.id} and database_id = ${from.id} and move_database_id = ${to.id} and state <> 'deleting'
        and not exists (select from databases where id = ${from.id} and is_writable)
      returning id`;
    if (!moved)
      throw conflict(
        "The base was deleted during the move, or its database made writable: what the customer has created there would be lost",
      );
    // Changes that the feed reported meanwhile are only in the old replica.
    await recordFeedGapOfBase(tx, base.id);
    const { accountId, id } = base;
    const details = { name: base.name, from: from.host, to: to.host };
    await recordChange(tx, ctx.actor, { accountId, action: "base.moved", subject: id, details });
  });
}

/**
 * Copies writes that clients sent before the base was pointed at its new database, and that are shown in the old one.
 */
async function copyLateWrites(
  target: Replica,
  reader: Omit<Reader, "counts" | "onFirstRequest">,
  written: WrittenElsewhere,
  loadSigner: LoadSigner,
  graceMs: number,
): Promise<void> {
  const until = performance.now() + graceMs;
  do {
    await wait(Math.min(COPY_PAUSE_MS, graceMs), reader.stop);
    await copyWrites(target, reader, await written.take(), loadSigner);
  } while (performance.now() < until);
}
