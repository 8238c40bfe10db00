/**
 * Bases: connecting a source base, reading it, changing its settings, and locating its replica. `delete-base.ts`
 * deletes it.
 */
import type { Context, Db } from "../../context";
import { BasetideError, conflict, invalid, notFound } from "../../errors";
import type { ServerUrl } from "../../external";
import { counted } from "../../format";
import { newId, rowById } from "../../ids";
import { cleanText, isUniqueViolation, jsonParameter } from "../../postgres";
import type { ReaderTarget } from "../../replica";
import { newSecret } from "../../secrets";
import { type Platform, platformById, type SourceBase, type SourceSelection } from "../../source";
import { recordChange } from "../audit";
import { getWorkspace, quotaKeyOf } from "../budgets";
import { forgetRefusal } from "../feeds";
import {
  applySqlUserWrites,
  type Destination,
  databaseAdminUrl,
  databaseReaderUrl,
  getDatabase,
  prepareDestination,
  readerRoleOf,
  removeUnusedDatabase,
  type SpareKeeper,
} from "../placement";
import { newAttachmentKey } from "./attachment-keys";
import { type Base, selectBases } from "./base-row";
import { applyKey, removeWebhook } from "./remove-webhook";
import { checkChoice, readSelectableWith } from "./selectable";
import { settingAssignments, settingColumns, settingDetails, settingValues } from "./setting-values";
import type { BaseSettings } from "./settings";
import { findSourceUser } from "./source-user";
import { installedWrites, OUTBOX_CHANNEL, switchSqlWrites } from "./sql-writes";

/** How often a base that needs attention is tried again, in case the source was repaired. */
const ATTENTION_RETRY_MS = 3 * 60_000;
/**
 * The same at first if the source refuses the key: it may do so for a moment only. The pause grows with the time for which
 * the base has failed.
 */
const REFUSED_RETRY_MS = 5000;
/**
 * The same for a base whose monthly cap is used up: each try costs a call, and only a larger plan or the next month
 * helps.
 */
const CAP_RETRY_MS = 60 * 60_000;

/** Returns how long after its last try a base that needs attention is tried again, ms. */
export function attentionPauseMs(error: Base["error"], attemptedMs: number): number {
  if (error?.code === "source_billing_limit") return CAP_RETRY_MS;
  if (error?.code !== "source_forbidden") return ATTENTION_RETRY_MS;
  return Math.min(ATTENTION_RETRY_MS, Math.max(REFUSED_RETRY_MS, attemptedMs - error.since.getTime()));
}

/** The context that the management of bases needs. */
export interface ManagementContext extends Context {
  queue: { requestSync(baseId: string): Promise<void> };
  /** The source platforms, in display order. */
  platforms: Platform[];
  /** What prepares spare databases in this process, if it does. */
  spares?: Pick<SpareKeeper, "used"> | undefined;
}

interface NewBase {
  platform: string;
  apiKey: string;
  sourceBaseId: string;
  destination?: Destination | undefined;
  settings?: Partial<BaseSettings> | undefined;
  /** What is copied; absent: everything. */
  selection?: SourceSelection | undefined;
  /** The workspace whose cap applies; without one there is no cap. */
  workspaceId?: string | null | undefined;
}

interface SyncTarget {
  /** That database, with the right to write there. */
  url: ServerUrl;
  schema: string;
  /** The role that reads there; undefined if it is our own. */
  role: string | undefined;
}

/**
 * Lists the bases that the key can read.
 *
 * @throws BasetideError `source_…` with the source's message; `invalid_request` for an unknown platform
 */
export async function listSourceBases(
  ctx: Pick<ManagementContext, "config" | "platforms">,
  platform: string,
  apiKey: string,
): Promise<SourceBase[]> {
  const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
  return platformById(ctx.platforms, platform).connect(apiKey).listBases(signal);
}

/**
 * Connects a source base: checks the key, prepares the destination, and requests the first sync.
 *
 * @throws BasetideError `already_exists` if the account has connected it, `source_…` if the key cannot read it,
 *   `destination_invalid`, `not_found` for a workspace that is not the account's, `invalid_request` for a selection
 *   that the source cannot fulfill
 */
export async function createBase(ctx: ManagementContext, accountId: string, base: NewBase): Promise<Base> {
  const { db, log, secrets } = ctx;
  await refuseConnected(db, accountId, base);
  if (base.settings?.sqlWrites) throw invalid("Turn `sql_writes` on when the base is connected");
  if (base.workspaceId) await getWorkspace(db, base.workspaceId, accountId);
  const checking = checkSource(ctx, base);
  const preparing = prepareDestination(ctx, accountId, base.destination ?? { kind: "new" }, checking);
  // The source's error is thrown first.
  preparing.catch(() => {});
  const { source, userId, choice } = await checking;
  const destination = await preparing;
  const id = newId("base");
  const settings = base.settings ?? {};
  const workspaceId = base.workspaceId ?? null;
  try {
    await db.begin(async (tx) => {
      await tx`
        insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name,
          state, encrypted_attachment_key, attachment_key_version, workspace_id, source_user_id, selection, encrypted_hash_key,
          unanswered_tables, ${settingColumns(db)})
        values (${id}, ${accountId}, ${base.platform}, ${source.id}, ${cleanText(source.name)},
          ${secrets.encrypt(base.apiKey, `bases.api_key:${id}`)}, ${destination.databaseId}, ${destination.schema},
          ${settings.paused ? "paused" : "starting"},
          ${settings.ownAttachmentUrls ? newAttachmentKey(ctx, id) : null}, ${settings.ownAttachmentUrls ? 1 : 0},
          ${workspaceId}, ${userId}, ${choice?.selection ? jsonParameter(choice.selection) : null}::text::jsonb,
          ${choice?.selection ? secrets.encrypt(newSecret(), `bases.hash_key:${id}`) : null}, ${jsonParameter(choice?.unanswered ?? [])}::text::jsonb,
          ${settingValues(db, settings)})`;
      // A base that was moved to another control plane, and is connected here again.
      await tx`delete from moved_bases where platform = ${base.platform} and source_base_id = ${source.id}`;
      const details = {
        name: cleanText(source.name),
        source_base: source.id,
        destination: base.destination?.kind ?? "new",
      };
      await recordChange(tx, ctx.actor, { accountId, action: "base.connected", subject: id, details });
    });
  } catch (error) {
    // A concurrent request took the same base or schema; a database that was created for this one is removed.
    await removeUnusedDatabase(ctx, destination.databaseId);
    if (isUniqueViolation(error)) throw alreadyConnected(base);
    throw error;
  }
  log.info({ baseId: id, platform: base.platform }, "base connected");
  const [created] = await Promise.all([getBase(db, id), askForSync(ctx, id)]);
  return created;
}

/** Returns what the source says of a new base, and what is copied of it. @throws BasetideError as `createBase` */
async function checkSource(ctx: ManagementContext, base: NewBase) {
  const [source, userId] = await Promise.all([
    findSourceBase(ctx, base.platform, base.apiKey, base.sourceBaseId),
    findSourceUser(ctx, base.platform, base.apiKey),
  ]);
  const choice = base.selection && checkChoice(base.selection, await readSelectableWith(ctx, base), null);
  return { source, userId, choice };
}

/** @throws BasetideError `not_found`, also if it does not belong to a given `accountId` */
export async function getBase(db: Db, id: string, accountId?: string): Promise<Base> {
  const own = accountId === undefined ? db`` : db`and b.account_id = ${accountId}`;
  return rowById("base", id, () => selectBases(db, db`b.id = ${id} ${own}`), `There is no base ${id}`);
}

/** Those of the account's bases that have these ids, in the order in which they were connected. */
export async function getBases(db: Db, accountId: string, ids: string[]): Promise<Base[]> {
  return selectBases(db, db`b.account_id = ${accountId} and b.id = any (${ids})`);
}

/** The account's bases, or all bases, in the order in which they were connected. */
export async function listBases(db: Db, accountId?: string): Promise<Base[]> {
  return selectBases(db, accountId === undefined ? db`true` : db`b.account_id = ${accountId}`);
}

/** What a link to each of these bases needs, by name. */
export async function listBaseNames(
  db: Db,
  ids: string[],
): Promise<Pick<Base, "id" | "name" | "sourceBaseId">[]> {
  return db<Pick<Base, "id" | "name" | "sourceBaseId">[]>`
    select id, name, source_base_id as "sourceBaseId" from bases where id = any (${ids}) order by lower(name), id`;
}

/**
 * Returns the bases that a worker should sync: not paused, not being deleted, not pausing for their budget. One
 * that needs attention is included every few minutes (soon, if it was refused a moment ago) or, if its monthly cap is used up, every hour and when a month
 * (UTC) begins.
 *
 * @param except a condition on `bases`: rows to exclude
 */
export async function activeBaseIds(db: Db, except: ReturnType<Db> = db`false`): Promise<string[]> {
  const rows = await db<{ id: string }[]>`${activeBases(db, except)} order by id`;
  return rows.map(({ id }) => id);
}

/** The query of `activeBaseIds`. */
export function activeBases(db: Db, except: ReturnType<Db>) {
  const ms = (length: number) => db`${length}::float8 * interval '1 ms'`;
  return db`
    select id from bases
    where not (${except}) and (
      (state in ('starting', 'active') and (rests_until is null or rests_until <= now()
        or resync_requested_at > attempted_at or schema_check_requested_at > attempted_at
        or catch_up_requested_at is not null))
      or (state = 'needs_attention'
        and (attempted_at < now() - case error_code
              when 'source_billing_limit' then ${ms(CAP_RETRY_MS)}
              when 'source_forbidden' then
                least(${ms(ATTENTION_RETRY_MS)}, greatest(${ms(REFUSED_RETRY_MS)}, attempted_at - error_since))
              else ${ms(ATTENTION_RETRY_MS)} end
          or (error_code = 'source_billing_limit'
            and attempted_at < date_trunc('month', now() at time zone 'UTC') at time zone 'UTC')
          or resync_requested_at > attempted_at)))`;
}

/**
 * Changes the given settings; a new key is checked at the source first.
 *
 * @throws BasetideError `source_…` if the key cannot read the base, `conflict` if it is being deleted, `not_found`
 *   for a workspace that is not the account's
 */
export async function updateSettings(
  ctx: ManagementContext,
  base: Base,
  changes: Partial<BaseSettings> & { apiKey?: string | undefined; workspaceId?: string | null | undefined },
): Promise<Base> {
  const { db } = ctx;
  const { workspaceId = base.workspaceId } = changes;
  if (typeof changes.workspaceId === "string") await getWorkspace(db, changes.workspaceId, base.accountId);
  let encryptedKey: string | null = null;
  let userId: string | null = null;
  let oldKey: string | undefined;
  if (changes.apiKey !== undefined) {
    [, userId] = await Promise.all([
      findSourceBase(ctx, base.platform, changes.apiKey, base.sourceBaseId, base.name),
      findSourceUser(ctx, base.platform, changes.apiKey),
    ]);
    encryptedKey = ctx.secrets.encrypt(changes.apiKey, `bases.api_key:${base.id}`);
    oldKey = await openApiKey(ctx, base).catch(() => undefined);
  }
  const writes = {
    sqlWrites: changes.sqlWrites ?? base.settings.sqlWrites,
    sqlWritesQueued: changes.sqlWritesQueued ?? base.settings.sqlWritesQueued,
  };
  const isOtherQueue = writes.sqlWrites && writes.sqlWritesQueued !== base.settings.sqlWritesQueued;
  const isSwitched = changes.sqlWrites !== undefined || isOtherQueue;
  if (isSwitched) await switchSqlWrites(ctx, base, await replicaTarget(ctx, base), writes);
  const paused = changes.paused ?? null;
  const ownUrls = changes.ownAttachmentUrls ?? null;
  const hasNewKey = encryptedKey !== null;
  const updated = await db.begin(async (tx) => {
    const [row] = await tx`
      update bases set
        ${settingAssignments(db, changes)},
        encrypted_attachment_key = coalesce(encrypted_attachment_key, ${ownUrls ? newAttachmentKey(ctx, base.id) : null}),
        attachment_key_version = greatest(attachment_key_version, ${ownUrls ? 1 : 0}),
        -- A schema check is due at once, whatever the budget: until it ran, rows may have URLs that nothing keeps valid.
        schema_check_requested_at = case
          when own_attachment_urls <> ${ownUrls}::boolean then now() else schema_check_requested_at
        end,
        workspace_id = ${changes.workspaceId === undefined ? db`workspace_id` : changes.workspaceId},
        sql_writes_installed = ${isSwitched ? installedWrites(ctx, writes) : db`sql_writes_installed`},
        rests_until = null,
        encrypted_api_key = coalesce(${encryptedKey}, encrypted_api_key),
        key_accepted_at = case when ${hasNewKey}::boolean then now() else key_accepted_at end,
        source_user_id = case when ${hasNewKey}::boolean then ${userId} else source_user_id end,
        state = case
          when coalesce(${paused}, is_paused) then 'paused'
          when state = 'paused' or (state = 'needs_attention' and ${hasNewKey}::boolean)
            then case when sync_completed_at is null then 'starting' else 'active' end
          else state
        end,
        error_code = case when ${hasNewKey}::boolean then null else error_code end,
        error_message = case when ${hasNewKey}::boolean then null else error_message end,
        error_since = case when ${hasNewKey}::boolean then null else error_since end
      where id = ${base.id} and state not in ('moving', 'deleting')
      returning state`;
    if (!row) throw conflict("The base is being moved or deleted");
    const details = {
      ...settingDetails(changes),
      ...(changes.workspaceId === undefined ? {} : { workspace_id: changes.workspaceId }),
      ...(changes.apiKey === undefined ? {} : { api_key: "replaced" }),
    };
    const change = { accountId: base.accountId, subject: base.id, details };
    await recordChange(tx, ctx.actor, { ...change, action: "base.changed" });
    // The new workspace may not be slowed down where the old one was.
    if (workspaceId !== base.workspaceId) {
      await tx`select quota_unthrottle(${quotaKeyOf(base)}, ${base.accountId})`;
    }
    if (isSwitched) await tx`select pg_notify(${OUTBOX_CHANNEL}, '')`;
    return row;
  });
  if (changes.sqlWrites) await applySqlUserWrites(ctx, await getDatabase(db, base.database.id));
  if (changes.apiKey !== undefined) await applyKey(ctx, base, { oldKey, newKey: changes.apiKey });
  if (changes.live === false) await removeWebhook(ctx, base, () => openApiKey(ctx, base));
  if (updated.state !== "paused") await askForSync(ctx, base.id);
  return getBase(db, base.id);
}

/** Stops syncing; the replica stays readable. */
export async function pause(ctx: ManagementContext, base: Base): Promise<Base> {
  return updateSettings(ctx, base, { paused: true });
}

export async function resume(ctx: ManagementContext, base: Base): Promise<Base> {
  return updateSettings(ctx, base, { paused: false });
}

/** Postpones the base's next sync by `ms`, for its budget; a requested sync or a change of settings ends that. */
export async function restUntil(db: Db, baseId: string, ms: number): Promise<void> {
  await db`update bases set rests_until = now() + ${ms} * interval '1 ms' where id = ${baseId}`;
}

/**
 * Requests a sync now, even if the base is waiting.
 *
 * @throws BasetideError `conflict` if it is paused or being deleted
 */
export async function requestResync(ctx: ManagementContext, base: Base): Promise<Base> {
  await ctx.db.begin(async (tx) => {
    const [updated] = await tx`
      update bases set resync_requested_at = now()
      where id = ${base.id} and state not in ('paused', 'moving', 'deleting') returning id`;
    if (!updated) throw conflict("The base is paused, or being moved or deleted; resume it first");
    const { accountId, id } = base;
    await recordChange(tx, ctx.actor, { accountId, action: "base.sync_requested", subject: id });
  });
  await ctx.queue.requestSync(base.id);
  return getBase(ctx.db, base.id);
}

/** Asks the source at once whether the base may have a feed by now: its key may do more. */
export async function recheckFeed(ctx: ManagementContext, base: Pick<Base, "id">): Promise<void> {
  await forgetRefusal(ctx.db, base.id);
  await ctx.queue.requestSync(base.id);
}

/** Returns the base's API key, decrypted. @throws BasetideError `not_found`, `secret_unreadable` */
export async function openApiKey(
  ctx: Pick<Context, "db" | "secrets">,
  base: Pick<Base, "id">,
): Promise<string> {
  const [row] = await ctx.db<{ encrypted_api_key: string }[]>`
    select encrypted_api_key from bases where id = ${base.id}`;
  if (!row) throw notFound(`There is no base ${base.id}`);
  return decryptApiKey(ctx, { id: base.id, encryptedApiKey: row.encrypted_api_key });
}

/** Decrypts a base's API key that was read already. @throws BasetideError `secret_unreadable` */
export function decryptApiKey(
  { secrets }: Pick<Context, "secrets">,
  { id, encryptedApiKey }: { id: string; encryptedApiKey: string },
): string {
  return secrets.decrypt(encryptedApiKey, `bases.api_key:${id}`);
}

/** Returns the base's replica, with the right to write it. @throws BasetideError `secret_unreadable` */
export async function replicaTarget(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<SyncTarget> {
  const database = await getDatabase(ctx.db, base.database.id);
  return {
    url: await databaseAdminUrl(ctx, database),
    schema: base.database.schema,
    role: readerRoleOf(database),
  };
}

/**
 * Returns the base's database as the console reads it.
 *
 * @throws BasetideError `secret_unreadable`
 */
export async function readerTarget(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<ReaderTarget> {
  const database = await getDatabase(ctx.db, base.database.id);
  const url = await databaseReaderUrl(ctx, database);
  // A customer's role ends its own sessions; the one that Basetide writes with may not end another's.
  const admin = database.hasReader ? url : await databaseAdminUrl(ctx, database);
  return { url, admin, schema: base.database.schema, mayWrite: database.clusterId === null };
}

/** @throws BasetideError `source_not_found` if the key can read other bases, but not this one */
async function findSourceBase(
  ctx: ManagementContext,
  platform: string,
  apiKey: string,
  sourceBaseId: string,
  name = sourceBaseId,
): Promise<SourceBase> {
  const bases = await listSourceBases(ctx, platform, apiKey);
  const found = bases.find((base) => base.id === sourceBaseId);
  if (found) return found;
  const others = bases.length === 0 ? "no base" : counted(bases.length, "other base");
  throw new BasetideError(
    "source_not_found",
    `The API key does not have access to the base "${name}"; it has access to ${others}`,
  );
}

/** Finds most duplicates before anything is created. */
async function refuseConnected(db: Db, accountId: string, base: NewBase): Promise<void> {
  const [connected] = await db`
    select from bases where account_id = ${accountId} and platform = ${base.platform}
      and source_base_id = ${base.sourceBaseId}`;
  if (connected) throw alreadyConnected(base);
}

function alreadyConnected(base: NewBase): BasetideError {
  return new BasetideError("already_exists", `The base ${base.sourceBaseId} is already connected`);
}

/** Wakes a worker. Never fails: the queue's reconciler finds every active base without a job. */
export async function askForSync(ctx: ManagementContext, baseId: string): Promise<void> {
  try {
    await ctx.queue.requestSync(baseId);
  } catch (error) {
    ctx.log.warn({ baseId, error }, "queueing a sync failed");
  }
}
