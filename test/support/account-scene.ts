/** An account with a row in every table that moves with an account, for tests of the move. */
import { symmetricEncrypt } from "better-auth/crypto";
import { createToken } from "../../core/control/accounts";
import { type Base, createBase } from "../../core/control/bases";
import { createSqlUser, getDatabase } from "../../core/control/placement";
import { numberedKeys } from "../../core/secrets";
import { GOOD_KEY, type TestControl } from "./control-support";

export const WEBHOOK_SECRET = "feed-secret";

export interface AccountScene {
  accountId: string;
  ownerId: string;
  /** A member, who also owns an account that stays. */
  memberId: string;
  token: string;
  bases: Base[];
}

/** @param email the owner's; the member is created as well */
export async function accountScene(
  { ctx, addAccount }: TestControl,
  email: string,
  memberEmail: string,
): Promise<AccountScene> {
  const { db, secrets, config } = ctx;
  const { id: accountId } = await addAccount(email);
  await addAccount(memberEmail);
  const idOf = async (address: string) =>
    (await db<{ id: string }[]>`select id from users where email = ${address}`)[0]!.id;
  const [ownerId, memberId] = [await idOf(email), await idOf(memberEmail)];
  await db`insert into account_members (account_id, user_id, role) values (${accountId}, ${memberId}, 'editor')`;
  const token = await createToken(db, accountId, "scene");
  await db`update api_tokens set created_by = ${memberId} where account_id = ${accountId} and name = 'scene'`;
  const bases = [
    await createBase(ctx, accountId, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" }),
    await createBase(ctx, accountId, {
      platform: "airtable",
      apiKey: GOOD_KEY,
      sourceBaseId: "appTwo",
      settings: { paused: true, ownAttachmentUrls: true },
    }),
  ];
  const [one, two] = bases as [Base, Base];
  const actor = { kind: "user" as const, name: email };
  await createSqlUser({ ...ctx, actor }, await getDatabase(db, one.database.id), "analyst");
  await db`insert into workspaces (id, account_id, name, plan, calls_per_month, reserve)
    values ('wsp_scene', ${accountId}, 'Team', 'team', 100000, 10)`;
  await db`update bases set workspace_id = 'wsp_scene', sync_completed_at = '2026-01-02 03:04:05.678901Z',
    recent_sweep_ms = '{0.1,1e-7,123456789.125}', error_code = 'internal', error_message = 'é"\\', error_since = now()
    where id = ${one.id}`;
  const keys = numberedKeys(config, "sessions");
  const key = { keys: new Map(keys.map((k) => [k.version, k.value])), currentVersion: keys[0]!.version };
  await db`insert into two_factors (id, user_id, secret, backup_codes) values ('tfa_scene', ${ownerId},
    ${await symmetricEncrypt({ key, data: "totp secret" })}, ${await symmetricEncrypt({ key, data: "codes" })})`;
  await db`insert into invitations (id, account_id, email, role, token_hash, invited_by, expires_at)
    values ('inv_scene', ${accountId}, 'new@example.com', 'viewer', 'hash', ${ownerId}, now() + interval '1 day')`;
  await db`insert into base_drafts (id, account_id, platform, encrypted_api_key)
    values ('dra_scene', ${accountId}, 'airtable', ${secrets.encrypt("draft key", "base_drafts.api_key:dra_scene")})`;
  await db`insert into requests (id, account_id, kind, message) values ('req_scene', ${accountId}, 'other', 'Hello')`;
  await db`insert into live_feeds (base_id, state, webhook_id, encrypted_secret, cursor, notification_url) values
    (${one.id}, 'on', 'ach1', ${secrets.encrypt(WEBHOOK_SECRET, `live_feeds.secret:${one.id}`)}, 7, 'https://old/hooks/x')`;
  await db`insert into source_tables (base_id, table_id, primary_field_id, fields, name, field_names, search_text)
    values (${one.id}, 'tblA', 'fldA', '[{"id":"fldA"}]', 'A', '{Name}', 'a')`;
  await db`insert into saved_queries (id, account_id, base_id, name, sql)
    values ('qry_scene', ${accountId}, ${one.id}, 'All', 'select 1')`;
  await db`insert into change_sets (id, base_id, state, ended_at) values ('chs_scene', ${one.id}, 'applied', now())`;
  // Half of them undo others that are read after them, as updates of rows can leave them.
  await db`insert into change_sets (id, base_id, state, ended_at, undoes)
    select 'chs_' || n, ${one.id}, 'applied', now(), case when n <= 300 then 'chs_' || n + 300 end
    from generate_series(1, 600) as n`;
  await db`insert into change_items (id, set_id, position, operation, table_ref, state, encrypted_cells)
    values ('chi_scene', 'chs_scene', 0, 'create', 'tblA', 'applied',
      ${secrets.encrypt("{}", "change_items.cells:chi_scene")})`;
  await db`insert into agents (id, account_id, name, may_propose, created_by)
    values ('agt_scene', ${accountId}, 'Claude', true, ${email})`;
  await db`insert into agent_bases (agent_id, base_id, tables) values ('agt_scene', ${one.id}, '{tblA}')`;
  await db`insert into agent_rules (id, agent_id, base_id, table_id, fields, updates_per_hour, created_by)
    values ('agr_scene', 'agt_scene', ${one.id}, 'tblA', '{fldA}', 20, ${email})`;
  await db`insert into agent_calls (agent_id, base_id, tool, ms) values ('agt_scene', ${one.id}, 'query', 3)`;
  await db`insert into query_history (id, account_id, user_id, base_id, sql, ms, rows)
    values ('pqr_scene', ${accountId}, ${memberId}, ${one.id}, 'select 2', 3, 1)`;
  await db`insert into schema_changes (base_id, kind, table_name)
    select ${one.id}, 'field_added', 't' || n from generate_series(1, 3) as n`;
  await db`insert into sync_runs (base_id, kind, started_at, seen, inserted, updated, deleted, requests, wait_ms)
    select ${one.id}, 'sweep', now() - n * interval '1 min', n, 0, 0, 0, 1, 0.5 from generate_series(1, 600) as n`;
  await db`insert into base_days (base_id, day, lag_p50_ms, lag_max_ms, changed, issues)
    values (${two.id}, '2026-01-01', '{1.5,null}', '{2,null}', '{3}', '{4}')`;
  await db`insert into base_periods (base_id, kind, label, began_at) values (${two.id}, 'pause', 'Paused', now())`;
  await db`insert into base_crashes (base_id, crashes) values (${one.id}, 1)`;
  await db`insert into repairs (base_id, table_ref, record_id) values (${one.id}, 'tblA', 'recA')`;
  await alertRows(db, accountId, memberId, one.id, secrets);
  const key1 = "airtable:appOne";
  await db`insert into quota_blocks (key, reason, blocked_at, blocked_until)
    values (${key1}, 'rate_limited', now(), now() + interval '20 s')`;
  await db`insert into quota_callers (key, day, caller, calls) values (${key1}, '2026-01-01', 'pat', '{1,2}')`;
  await db`insert into quota_calls (key, month, sync, client)
    values (${key1}, '2026-01-01', 10, 5), ('left:wsp_scene', '2026-01-01', 3, 1)`;
  await db`insert into quota_days (key, day, sync, client) values (${key1}, '2026-01-01', '{1}', '{2}')`;
  await db`insert into quota_kinds (key, month, kind, calls) values (${`base:${one.id}`}, '2026-01-01', 'list', 9)`;
  await db`insert into quota_throttled (key, account_id, since, until, is_certain)
    values (${key1}, ${accountId}, now(), now() + interval '1 h', true)`;
  return { accountId, ownerId, memberId, token, bases };
}

async function alertRows(
  db: TestControl["ctx"]["db"],
  accountId: string,
  memberId: string,
  baseId: string,
  secrets: TestControl["ctx"]["secrets"],
): Promise<void> {
  await db`insert into alert_preferences (account_id, user_id, kinds) values (${accountId}, ${memberId}, '{red}')`;
  await db`insert into alert_webhooks (id, account_id, name, form, host, encrypted_url, encrypted_secret, kinds)
    values ('whk_scene', ${accountId}, 'Chat', 'json', 'chat.example', ${secrets.encrypt("https://chat.example/x", "alert_webhooks.url:whk_scene")},
      ${secrets.encrypt("signs", "alert_webhooks.secret:whk_scene")}, '{red}')`;
  // After two of the three schema changes.
  await db`insert into alert_states (base_id, kind, since, cursor)
    select ${baseId}, 'schema_changed', now(), max(id) - 1 from schema_changes where base_id = ${baseId}`;
  await db`insert into alerts (account_id, base_id, kind, at, facts)
    values (${accountId}, ${baseId}, 'red', now(), '{"n":1}'), (${accountId}, ${baseId}, 'red', now(), '{"n":2}')`;
  await db`insert into alert_messages (id, account_id, user_id, at, subject)
    values ('msg_scene', ${accountId}, ${memberId}, now(), 'Red')`;
  await db`insert into alert_notices (alert_id, account_id, user_id, message_id)
    select max(id), ${accountId}, ${memberId}, 'msg_scene' from alerts where account_id = ${accountId}`;
}
