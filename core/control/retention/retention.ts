/**
 * How long the rows of each table of the control plane are kept, and the deletion of those that are older.
 *
 * Every table has a rule: rows have an age or an expiry, or something else limits their number. A test compares this list
 * with the tables that exist, and `docs/operations.md` has it as a table.
 */
import type { Db } from "../../context";

/** A rule for the rows of a table. */
export type Retention =
  /** Deleted when the time in `column` is longer ago than `kept`, if `only` holds. */
  | { kept: string; column: string; only?: string; about?: string }
  /** Deleted when the time in `column` has passed. */
  | { expires: string; about?: string }
  /** Not deleted by age: what limits the number of rows. `trimmed` says when rows are deleted elsewhere. */
  | { bound: string };

/** Also how far back the log of schema changes shows. */
export const SCHEMA_CHANGES_KEPT = "1 year";

const CHARTS = "31 days";
const ALERTS = "90 days";
/** As long as the audit log: a year, and a month to look at it. */
const YEAR = "400 days";

/** By table: those of the schema `public`, then those of pg-boss. */
export const retention: Record<string, Retention> = {
  accepted_keys: { bound: "a few per base; refreshed and replaced for a day" },
  account_members: { bound: "one per person and account" },
  account_moves: { bound: "one per account that was moved" },
  accounts: { bound: "one per account" },
  agent_bases: { bound: "one per agent and base" },
  agent_calls: { kept: "30 days", column: "called_at" },
  agent_rules: { bound: "made by people" },
  agents: { bound: "made by people" },
  alert_clock: { bound: "one row" },
  alert_messages: { kept: ALERTS, column: "at" },
  alert_notices: { bound: "deleted with their alert" },
  alert_preferences: { bound: "one per person and account" },
  alert_states: { bound: "one per base and kind of alert" },
  alert_webhooks: { bound: "made by people" },
  alerts: { kept: ALERTS, column: "at" },
  api_tokens: {
    kept: ALERTS,
    column: "expires_at",
    about: "after it has expired; without an expiry, until it is revoked",
  },
  attempts: { expires: "ends_at" },
  audit_log: { kept: YEAR, column: "at" },
  base_crashes: {
    kept: "7 days",
    column: "counted_until",
    only: "suspected_at is null and quarantines = 0",
    about: "after the last crash of a base that is no suspect",
  },
  base_days: { kept: CHARTS, column: "day" },
  base_drafts: { kept: "7 days", column: "updated_at" },
  base_periods: { kept: "91 days", column: "ended_at" },
  bases: { bound: "one per base" },
  change_items: { bound: "deleted with their change set" },
  change_sets: { kept: ALERTS, column: "created_at" },
  clusters: { bound: "one per server of replicas" },
  databases: { bound: "one per database" },
  installation: { bound: "one row" },
  installed_functions: { bound: "one row" },
  invitations: { expires: "expires_at" },
  job_holders: { bound: "one per running process; deleted after ten seconds without a heartbeat" },
  live_feeds: { bound: "one per base" },
  moved_bases: {
    kept: YEAR,
    column: "moved_at",
    about: "after the move: until then, clients of the old address learn the new one",
  },
  notification_addresses: { bound: "one per `CONSOLE_URL` that was ever configured" },
  oauth_access_tokens: { expires: "expires_at" },
  oauth_client_assertions: { expires: "expires_at" },
  oauth_clients: {
    kept: "7 days",
    column: "updated_at",
    only: "not exists (select from oauth_consents as o where o.client_id = oauth_clients.client_id)",
    about: "after a client was last seen that nobody has connected",
  },
  oauth_consents: {
    kept: "31 days",
    column: "updated_at",
    only: `not exists (select from oauth_refresh_tokens as t where t.reference_id = oauth_consents.reference_id
      and t.user_id = oauth_consents.user_id and t.client_id = oauth_consents.client_id)`,
    about: "after a client was connected, unless it has a token that can be renewed",
  },
  oauth_refresh_tokens: { expires: "expires_at" },
  oauth_resources: { bound: "one per `CONSOLE_URL` that was ever configured" },
  query_history: {
    kept: "90 days",
    column: "ran_at",
    about: "after the last run; a hundred per person and base",
  },
  quota_blocks: { bound: "one per base" },
  quota_callers: { kept: CHARTS, column: "day" },
  quota_calls: { kept: YEAR, column: "month" },
  quota_days: { kept: CHARTS, column: "day" },
  quota_kinds: { kept: YEAR, column: "month" },
  quota_minutes: { kept: "1 hour", column: "minute" },
  quota_permits: { bound: "five per base, fifty per user; deleted with their key" },
  quota_epochs: { bound: "one row" },
  quota_holders: { kept: "1 day", column: "to_timestamp(seen_at / 1000)", about: "after the last heartbeat" },
  quota_proxies: {
    kept: "1 day",
    column: "to_timestamp(owed_until / 1000)",
    about: "after what the proxy was owed",
  },
  quota_keys: { bound: "one per base and user of the source; deleted after a day without a request" },
  quota_throttled: { kept: "1 day", column: "until", about: "after its end" },
  quota_wants: { bound: "one per permit that a process waits for" },
  rate_limits: { kept: "1 day", column: "to_timestamp(last_request / 1000)" },
  repairs: { bound: "one per record whose write is not in SQL yet" },
  requests: { kept: YEAR, column: "decided_at", about: "after the decision" },
  saved_queries: { bound: "made by people, and kept until they delete them" },
  schema_changes: { kept: SCHEMA_CHANGES_KEPT, column: "seen_at" },
  schema_migrations: { bound: "one per migration" },
  sessions: { expires: "expires_at" },
  source_tables: { bound: "one per table of a base" },
  sql_users: { bound: "made by people" },
  sync_runs: { kept: "30 days", column: "started_at" },
  task_attempts: { bound: "one per task that is tried again; deleted when it succeeds" },
  two_factors: { bound: "one per person" },
  used_codes: { kept: "1 hour", column: "used_at" },
  user_logins: { bound: "one per person and service" },
  users: { bound: "one per person" },
  verifications: { expires: "expires_at" },
  watchdog_clock: { bound: "one row" },
  processes: { kept: "1 day", column: "seen_at", about: "after the last heartbeat" },
  workspaces: { bound: "made by people" },
  "pgboss.bam": { bound: "one per change of pg-boss's own tables" },
  "pgboss.job": {
    bound: "one per base that is synced; finished ones are deleted after five minutes",
  },
  "pgboss.job_dependency": { bound: "not used" },
  "pgboss.queue": { bound: "one per queue" },
  "pgboss.queue_stats": { bound: "not used" },
  "pgboss.schedule": { bound: "one row" },
  "pgboss.subscription": { bound: "not used" },
  "pgboss.version": { bound: "one row" },
  "pgboss.warning": { bound: "not used" },
};

/** Returns a rule as a phrase. */
export function retentionText(rule: Retention): string {
  if ("bound" in rule) return rule.bound;
  if ("expires" in rule) return "until they expire";
  return rule.about ? `${rule.kept} ${rule.about}` : rule.kept;
}

/**
 * Deletes the rows that are too old; those that another statement has locked, the next time.
 *
 * @returns how many, of the tables that had any
 * @throws when those of all other tables are deleted, if a table's rows cannot be
 */
export async function trimTables(db: Db): Promise<Record<string, number>> {
  const deleted: Record<string, number> = {};
  const failed: string[] = [];
  let cause: unknown;
  for (const [table, rule] of Object.entries(retention)) {
    const condition = outdated(rule);
    if (condition === undefined) continue;
    try {
      const { count } = await db.unsafe(`
        delete from ${table} where ctid = any (array(
          select ctid from ${table} where ${condition} for update skip locked))`);
      if (count > 0) deleted[table] = count;
    } catch (error) {
      failed.push(table);
      cause ??= error;
    }
  }
  if (failed.length > 0) throw new Error(`rows of ${failed.join(", ")} were not deleted`, { cause });
  return deleted;
}

/** The condition on a row that is too old; undefined for a table whose rows have no age. */
function outdated(rule: Retention): string | undefined {
  if ("bound" in rule) return undefined;
  if ("expires" in rule) return `${rule.expires} < now()`;
  const isOld = `${rule.column} < now() - interval '${rule.kept}'`;
  return rule.only ? `${isOld} and ${rule.only}` : isOld;
}
