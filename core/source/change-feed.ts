/**
 * What a source that tells of its changes looks like: webhooks on a base, each with a numbered feed of changes.
 *
 * A change is named, not shown: which records, fields and tables, so that the reader reads them again in the shapes
 * of a sweep. The feed may name what has not changed, name things twice, and leave computed cells out.
 */
import type { SourceSchema } from "./types";

export interface SourceWebhook {
  id: string;
  /** Where notifications go; absent for a webhook that is only read. */
  notificationUrl?: string | undefined;
  /** False: it makes no more changes and cannot be revived. */
  isEnabled: boolean;
  /** False: notifications have failed too often, or were switched off. */
  areNotificationsEnabled: boolean;
  /** The cursor of a reader that has read everything. */
  nextCursor: number;
  /** When it is disabled unless it is refreshed or read before, ms since 1970 on the source's clock. */
  expiresMs?: number | undefined;
}

/** What changed in one table. A record is in one of the three at most, the one that it was in last. */
export interface ChangedTable {
  created: string[];
  /** Record id → fields whose cells changed. */
  changed: Map<string, string[]>;
  destroyed: string[];
  /** Fields were made, renamed, retyped or deleted. */
  fieldsChanged: boolean;
  /** Types, in the platform's words, that fields are said to have come to have, one after the other: by field id. */
  typesTold: Map<string, string[]>;
}

export interface SourceChanges {
  /** By table id, new tables too; not of tables that are gone. */
  tables: Map<string, ChangedTable>;
  tablesCreated: string[];
  tablesDestroyed: string[];
  /** Tables with another name or description. */
  tablesChanged: string[];
}

/** One answer of a feed. */
export interface ChangeBatch {
  /** To ask for next, once everything in here is durable. */
  cursor: number;
  /** There is more at `cursor` already. */
  mightHaveMore: boolean;
  /** Payloads that were read. */
  payloads: number;
  changes: SourceChanges;
  /**
   * The source no longer keeps what stands between the asked cursor and the first payload: only a whole read finds
   * what changed then.
   */
  hasGap: boolean;
  /**
   * The first error payload's code: `INVALID_HOOK`, `INVALID_FILTERS` (the webhook is off and has to be made anew),
   * `INTERNAL_ERROR`, others of the source, or `UNREADABLE_PAYLOAD` for one that is not of its form. Changes may
   * be missing from a batch with an error: only a whole read finds them.
   */
  error?: string | undefined;
}

/** A link by which a change reaches records of another table. */
export interface Hop {
  /** Where the changed records are. */
  fromTableId: string;
  /** Where the dependent records are: those whose cell `viaLinkFieldId` links a changed record. */
  tableId: string;
  /** A link field of `tableId` to `fromTableId`. */
  viaLinkFieldId: string;
  /** The other side of that link, a field of `fromTableId`, where there is one: it holds the same links. */
  inverseLinkFieldId: string | undefined;
}

export interface ChangedCells {
  tableId: string;
  /** Null where every cell counts as changed, as in a record that came or went. */
  fieldId: string | null;
  recordIds: readonly string[];
}

/** What hangs on what in one state of a base's schema. */
export interface Dependents {
  /**
   * Every hop over which a change of the field can reach other records, nearest first and each once; none for a
   * field that the schema does not know. The other side of a changed link is among them.
   */
  hops(tableId: string, fieldId: string | null): Hop[];
  /**
   * The records, by table, that have to be read again because other records have changed; without those changed
   * records themselves.
   *
   * @param findLinking the ids of the records of `hop.tableId` whose cell `hop.viaLinkFieldId` links one of the ids
   */
  records(
    changed: readonly ChangedCells[],
    findLinking: (hop: Hop, ids: string[]) => Iterable<string> | Promise<Iterable<string>>,
  ): Promise<Map<string, Set<string>>>;
}

/**
 * Every call but `dependents` and `changesByItself` is one request of the base's quota and may throw a BasetideError `source_…`: `source_forbidden` where
 * the key lacks the scope or the role, `source_not_found` where the webhook is gone.
 */
export interface ChangeFeed {
  /**
   * A webhook for everything in the base, with no filter: one on a field would fall silent with the field.
   *
   * @param options.notificationUrl notifications are posted there
   * @returns its id, the secret that signs its notifications (base64, given only here) and when it expires, ms since 1970
   */
  createWebhook(
    baseId: string,
    options: { notificationUrl?: string | undefined },
    signal: AbortSignal,
  ): Promise<{ id: string; secretBase64: string; expiresMs: number | undefined }>;
  /** All that the key can see, other programs' too. */
  listWebhooks(baseId: string, signal: AbortSignal): Promise<SourceWebhook[]>;
  /** Does nothing if the webhook is gone already. */
  deleteWebhook(baseId: string, webhookId: string, signal: AbortSignal): Promise<void>;
  /** Puts off the end of an active webhook. @returns when it expires now, ms since 1970 */
  refreshWebhook(baseId: string, webhookId: string, signal: AbortSignal): Promise<number | undefined>;
  /** Switches notifications on or off; changes are kept either way. */
  enableNotifications(baseId: string, webhookId: string, enable: boolean, signal: AbortSignal): Promise<void>;
  /** Known without a call; to be kept as long as the schema stands. */
  dependents(schema: SourceSchema): Dependents;
  /**
   * Are there cells that change without anybody changing a record (they look at the time, or are URLs that end)? No
   * feed tells of those. Known without a call.
   *
   * @param options.hasLastingUrls the source's URLs are not kept anywhere
   */
  changesByItself(schema: SourceSchema, options?: { hasLastingUrls: boolean }): boolean;
  /** The changes from `cursor` (1 or more) on; also puts off the webhook's end as a refresh does. */
  listPayloads(baseId: string, webhookId: string, cursor: number, signal: AbortSignal): Promise<ChangeBatch>;
}
