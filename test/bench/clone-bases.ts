/**
 * Sets up thousands of bases in minutes: clones one that was connected normally.
 *
 * Cloned: the base at the source, with its records (the ids of tables and records are those of the pattern), the
 * replica with `create database … template`, and the rows of the control plane. Real for each base: its role, password,
 * secrets and ids, its webhook at the source if it is live. A worker cannot tell a clone from a base that another worker
 * has synced and given up: what that one knew of the pattern's rows is in the replica.
 */
import type postgres from "postgres";
import type { Base } from "../../core/control/bases";
import { newId } from "../../core/ids";
import type { Provisioned } from "../../core/replica";
import { createRole, nameDatabase } from "../../core/replica/provision";
import { platformById } from "../../core/source";
import { notificationAddress } from "../../core/sync/modes/live";
import type { Fleet } from "../support/fleet";
import type { SandboxProcess } from "../support/sandbox-process";

/** How many bases are cloned at the same time: Postgres copies databases one after the other. */
const LANES = 4;
const PLATFORM = "airtable";

/** Where and what to clone. */
export interface Cloning {
  fleet: Fleet<SandboxProcess>;
  source: SandboxProcess;
  /** As superuser of the replicas' server. */
  admin: postgres.Sql;
  /** Completed its first sync. No worker may hold it while it is cloned. */
  pattern: Base;
  /** Bases of one user of the source: all bases of a user share 50 requests a second. */
  basesOfAUser: number;
}

/** Clones the pattern until there are `count` bases. */
export async function cloneUpTo(cloning: Cloning, count: number): Promise<void> {
  const { fleet, source, basesOfAUser } = cloning;
  const [row] = await fleet.ctx.db<{ count: number }[]>`select count(*)::int as count from bases`;
  let next = row!.count;
  const clone = async () => {
    while (next < count) await cloneBase(cloning, await userOf(source, Math.floor(next++ / basesOfAUser)));
  };
  await Promise.all(Array.from({ length: LANES }, clone));
}

async function cloneBase({ fleet, source, admin, pattern }: Cloning, user: SourceUser): Promise<void> {
  const { db, secrets } = fleet.ctx;
  const [id, databaseId, named] = [newId("base"), newId("database"), nameDatabase()];
  const path = `bases/${pattern.sourceBaseId}/clone`;
  const { baseId } = (await source.call("POST", path)) as { baseId: string };
  const feed = await copiedFeed(fleet, pattern, { id, sourceBaseId: baseId, key: user.key });
  await cloneDatabase(fleet, admin, pattern, named);
  await db.begin(async (tx) => {
    await tx`
      insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
      select ${databaseId}, account_id, cluster_id, ${named.database}, ${named.role},
        ${secrets.encrypt(named.password, `databases.password:${databaseId}`)}
      from databases where id = ${pattern.database.id}`;
    await copyRow(tx, "bases", "id", pattern.id, {
      id,
      source_base_id: baseId,
      source_user_id: user.id,
      database_id: databaseId,
      encrypted_api_key: secrets.encrypt(user.key, `bases.api_key:${id}`),
      recent_sweep_ms: [],
      // The first lease records them.
      replica_identity: null,
      replica_epoch: null,
    });
    if (feed) await copyRow(tx, "live_feeds", "base_id", pattern.id, feed);
  });
}

/** What a live base's feed has instead of the pattern's: a webhook of its own. */
async function copiedFeed(
  { ctx }: Fleet<SandboxProcess>,
  pattern: Base,
  { id, sourceBaseId, key }: { id: string; sourceBaseId: string; key: string },
): Promise<RowValues | undefined> {
  if (pattern.live?.state !== "on") return undefined;
  const { url } = await notificationAddress(ctx.config, { id, platform: PLATFORM });
  const webhook = await platformById(ctx.platforms, PLATFORM)
    .connect(key)
    .changeFeed!.createWebhook(
      sourceBaseId,
      { notificationUrl: url ?? undefined },
      AbortSignal.timeout(30_000),
    );
  return {
    base_id: id,
    webhook_id: webhook.id,
    encrypted_secret: ctx.secrets.encrypt(webhook.secretBase64, `live_feeds.secret:${id}`),
    cursor: 1,
  };
}

async function cloneDatabase(
  { ctx }: Fleet<SandboxProcess>,
  admin: postgres.Sql,
  pattern: Base,
  named: Provisioned,
): Promise<void> {
  const { database, role } = named;
  const [template] = await ctx.db<{ name: string }[]>`
    select name from databases where id = ${pattern.database.id}`;
  await createRole(admin, named);
  await admin.unsafe(`create database ${database} template ${template!.name} strategy file_copy`);
  await admin.unsafe(`
    revoke all on database ${database} from public;
    grant connect on database ${database} to ${role}`);
}

type RowValues = Record<string, string | number | Date | null | []>;

/** Inserts a copy of a row with some other values. */
async function copyRow(
  tx: postgres.TransactionSql,
  table: string,
  key: string,
  value: string,
  others: RowValues,
): Promise<void> {
  await tx`
    insert into ${tx(table)}
    select (jsonb_populate_record(r, ${JSON.stringify(others)}::text::jsonb)).* from ${tx(table)} as r
    where ${tx(key)} = ${value}`;
}

interface SourceUser {
  id: string;
  key: string;
}

const users = new Map<number, Promise<SourceUser>>();

/** Returns the nth user of the source, with a key of it. */
export function userOf(source: SandboxProcess, nth: number): Promise<SourceUser> {
  const id = `usr${String(nth).padStart(14, "0")}`;
  const made = async () => {
    const user = { id, email: `${nth}@example.org`, name: `U${nth}` };
    const { token } = (await source.call("POST", "keys", { user })) as { token: string };
    return { id, key: token };
  };
  const user = users.get(nth) ?? made();
  users.set(nth, user);
  return user;
}
