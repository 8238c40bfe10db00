/** Facts that a running sync depends on and that people may change at any time, read for many bases at once. */
import type { Db } from "../../context";
import type { BaseState } from "./base-row";
import { settingColumns, settingsOf } from "./setting-values";
import type { BaseSettings, SettingsRow } from "./settings";

export interface SyncFacts {
  id: string;
  state: BaseState;
  settings: BaseSettings;
  resyncRequestedAt: Date | null;
  schemaCheckRequestedAt: Date | null;
  catchUpRequestedAt: Date | null;
  /** The replica's database: a move changes it. */
  databaseId: string;
  /** Of the replica's server; null if unknown. */
  timeline: string | null;
  /** Changes with the API key. */
  keyVersion: string;
  /** Changes with the key of the attachment URLs. */
  attachmentKeyVersion: number;
}

/** Returns the facts of those bases that exist. */
export async function syncFacts(db: Db, baseIds: string[]): Promise<SyncFacts[]> {
  const rows = await db<FactsRow[]>`
    select id, state, ${settingColumns(db)}, attachment_key_version, resync_requested_at, schema_check_requested_at,
      catch_up_requested_at, database_id, md5(encrypted_api_key) as key_version,
      (select c.timeline from databases as d join clusters as c on c.id = d.cluster_id where d.id = database_id) as timeline
    from bases where id = any (${baseIds})`;
  return rows.map((row) => ({
    id: row.id,
    state: row.state,
    settings: settingsOf(row),
    resyncRequestedAt: row.resync_requested_at,
    schemaCheckRequestedAt: row.schema_check_requested_at,
    catchUpRequestedAt: row.catch_up_requested_at,
    databaseId: row.database_id,
    timeline: row.timeline,
    keyVersion: row.key_version,
    attachmentKeyVersion: row.attachment_key_version,
  }));
}

interface FactsRow extends SettingsRow {
  id: string;
  timeline: string | null;
  state: BaseState;
  attachment_key_version: number;
  resync_requested_at: Date | null;
  schema_check_requested_at: Date | null;
  catch_up_requested_at: Date | null;
  database_id: string;
  key_version: string;
}
