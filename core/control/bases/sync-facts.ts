/** Facts that a running sync depends on and that people may change at any time, read for many bases at once. */
import type { Db } from "../../context";
import type { SyncFacts } from "../../sync/host";
import { settingColumns, settingsOf } from "./setting-values";
import type { SettingsRow } from "./settings";

/** Returns the facts of those bases that exist. */
export async function syncFacts(db: Db, baseIds: string[]): Promise<SyncFacts[]> {
  const rows = await db<(Omit<SyncFacts, "settings"> & { settings: SettingsRow })[]>`
    select id, state, (select to_json(s) from (select ${settingColumns(db)}) as s) as settings, selection,
      attachment_key_version as "attachmentKeyVersion", resync_requested_at as "resyncRequestedAt",
      schema_check_requested_at as "schemaCheckRequestedAt", catch_up_requested_at as "catchUpRequestedAt",
      is_watched as "isWatched", database_id as "databaseId", md5(encrypted_api_key) as "keyVersion",
      (select c.timeline from databases as d join clusters as c on c.id = d.cluster_id where d.id = database_id) as timeline
    from bases where id = any (${baseIds})`;
  return rows.map(({ settings, ...facts }) => ({ ...facts, settings: settingsOf(settings) }));
}

/** One of them differs at least whenever the facts do. */
export interface SyncVersion {
  /** Of the base's row. */
  base: string;
  /** Of all clusters. */
  clusters: string;
}

/** Returns the version of each of those bases that exist; costs a tenth of reading the facts. */
export async function syncVersions(db: Db, baseIds: string[]): Promise<Map<string, SyncVersion>> {
  const rows = await db<({ id: string } & SyncVersion)[]>`
    select b.id, b.xmin::text as base, c.versions as clusters from bases as b,
      (select hashtext(coalesce(string_agg(xmin::text, ' ' order by id), ''))::text as versions from clusters) as c
    where b.id = any (${baseIds})`;
  return new Map(rows.map(({ id, ...version }) => [id, version]));
}

/** Letters of a base's id that are its group: there are at most a thousand groups. */
const GROUP_LETTERS = "bas_".length + 2;

/** Returns the group of a base, by its id, for `syncVersionDigests`. */
export function versionGroupOf(baseId: string): string {
  return baseId.slice(0, GROUP_LETTERS);
}

/**
 * Returns a digest of the versions of all those bases in each group. Most bases of a worker with thousands are at rest:
 * if the digest of a group is the same as before, no version in it needs to be read.
 *
 * @param baseIds an array parameter as text (`arrayOf`): to format thousands of ids each second takes time
 */
export async function syncVersionDigests(db: Db, baseIds: string): Promise<Map<string, string>> {
  // Joined, so that the text is read once: as the array of `any`, it may be read for each row.
  const rows = await db<{ group: string; digest: string }[]>`
    select left(b.id, ${GROUP_LETTERS}::integer) as group,
      bit_xor(hashtextextended(b.id || ' ' || b.xmin::text || ' ' || c.versions, 0))::text as digest
    from unnest(${baseIds}::text::text[]) as watched (id) join bases as b on b.id = watched.id
      cross join
        (select hashtext(coalesce(string_agg(xmin::text, ' ' order by id), ''))::text as versions from clusters) as c
    group by 1`;
  return new Map(rows.map(({ group, digest }) => [group, digest]));
}

/**
 * Returns a hash of each base's own facts, without those of its cluster. A run changes the version of its base, but
 * seldom a fact: comparing hashes costs a fraction of reading the facts.
 */
export async function syncFactHashes(db: Db, baseIds: string[]): Promise<Map<string, string>> {
  const rows = await db<{ id: string; hash: string }[]>`
    select id, hashtextextended(row(state, ${settingColumns(db)}, selection, attachment_key_version,
      resync_requested_at, schema_check_requested_at, catch_up_requested_at, is_watched, database_id, encrypted_api_key)::text,
      0)::text as hash
    from bases where id = any (${baseIds})`;
  return new Map(rows.map(({ id, hash }) => [id, hash]));
}
