/** Creates the bases of a simulated fleet (test/support/fleet-process.ts) in the control plane. */
import type postgres from "postgres";
import { createAccount } from "../../core/control/accounts";
import type { ensureDefaultCluster } from "../../core/control/placement";
import { queueDepth } from "../../core/queue";
import { until } from "./poll";

export const SHARED_OUT_TIMEOUT_MS = 600_000;

type BenchContext = Parameters<typeof ensureDefaultCluster>[0];

/** Inserts rows as if that many bases had been connected and synced once. */
export async function insertBases(ctx: BenchContext, count: number): Promise<void> {
  const { db, secrets } = ctx;
  const account = await createAccount(db, { email: "bases@example.org", password: "correct horse" });
  const rows = Array.from({ length: count }, (_, index) => {
    const id = `bas_${String(index).padStart(20, "0")}`;
    return {
      id,
      source: `app${String(index).padStart(14, "0")}`,
      key: secrets.encrypt("key", `bases.api_key:${id}`),
    };
  });
  await db`
    with rows as (select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (id text, source text, key text)),
    made as (
      insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
      select 'dbs' || id, ${account.id}, (select id from clusters), id, id, '' from rows)
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, state)
    select id, ${account.id}, 'airtable', source, 'quiet', key, 'dbs' || id, 'public', 'starting' from rows`;
}

/** Leaves `count` bases of that kind, and pauses the others. All leases end, so that none keeps its former kind for a minute. */
export async function keepOnly(db: postgres.Sql, kind: string, count: number): Promise<void> {
  await db`update bases set is_paused = true, state = 'paused'`;
  await allInHand(db, 0);
  await db`
    update bases set name = ${kind}, is_paused = false, state = 'starting'
    where id in (select id from bases order by id limit ${count})`;
}

export async function allInHand(db: postgres.Sql, count: number): Promise<void> {
  await until(async () => (await queueDepth(db)).active === count, {
    what: `${count} bases in hand`,
    timeoutMs: SHARED_OUT_TIMEOUT_MS,
    intervalMs: 200,
  });
}

/** Leases that began before the bases had that kind have ended. */
export async function allSynced(db: postgres.Sql, count: number): Promise<void> {
  const [now] = await db<{ now: Date }[]>`select now()`;
  const isSynced = async () => {
    const [row] = await db<{ synced: number }[]>`
      select count(*)::int as synced from bases where state <> 'paused' and sync_started_at > ${now!.now}`;
    return row!.synced === count;
  };
  await until(isSynced, { what: `${count} bases synced`, timeoutMs: SHARED_OUT_TIMEOUT_MS, intervalMs: 200 });
}
