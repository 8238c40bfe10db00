/**
 * The interface of a source that reports changes: webhooks on a base, each with a numbered feed of changes.
 *
 * The feed names the changed records, fields and tables without their values, so that the reader reads them again in
 * the form that a sweep does. It may name unchanged records, name records twice, and omit computed cells.
 */
import type { SourceSchema } from "./types";

export interface SourceWebhook {
  id: string;
  /** Where notifications are sent; absent for a webhook whose feed is only polled. */
  notificationUrl?: string | undefined;
  /** False: it records no more changes and cannot be revived. */
  isEnabled: boolean;
  /** False: notifications have failed too often, or were switched off. */
  areNotificationsEnabled: boolean;
  /** The cursor of a reader that has read everything; undefined if it cannot be read. */
  nextCursor: number | undefined;
  /** When it is disabled unless it is refreshed or read before, ms since 1970 on the source's clock. */
  expiresMs?: number | undefined;
}

/** The changes of one table. Each record is in at most one of the three lists: the last that applied. */
export interface ChangedTable {
  created: string[];
  /** Record id → fields whose cells changed; none: any of them. */
  changed: Map<string, string[]>;
  /** Record id → cells by field id, as the feed has them, of records that it names once: of one change. */
  told: Map<string, Readonly<Record<string, unknown>>>;
  destroyed: string[];
  /** Fields were created, renamed, retyped or deleted. */
  fieldsChanged: boolean;
  /** The successive types, in the platform's terms, that the feed reports for a field; by field id. */
  typesTold: Map<string, string[]>;
  /** A part of its changes cannot be read: any record and any field may have changed. */
  isUnreadable: boolean;
}

export interface SourceChanges {
  /** By table id, including new tables but not deleted ones. */
  tables: Map<string, ChangedTable>;
  tablesCreated: string[];
  tablesDestroyed: string[];
  /** Tables whose name or description changed. */
  tablesChanged: string[];
}

/** One answer of a feed. */
export interface ChangeBatch {
  /** The cursor of the next request, once everything in this batch is durable. */
  cursor: number;
  /** More changes are available at `cursor` now. */
  mightHaveMore: boolean;
  /** Number of payloads read. */
  payloads: number;
  changes: SourceChanges;
  /**
   * The source no longer has the payloads between the requested cursor and the first payload: only a full check finds
   * those changes.
   */
  hasGap: boolean;
  /**
   * The first error payload's code: `INVALID_HOOK`, `INVALID_FILTERS` (the webhook is off and must be created again),
   * `INTERNAL_ERROR`, others of the source, or `UNREADABLE_PAYLOAD` for one whose tables cannot be read. A batch with an
   * error may lack changes: only a full check finds them.
   */
  error?: string | undefined;
}

/** A link through which a change reaches records of another table. */
export interface Hop {
  /** The table of the changed records. */
  fromTableId: string;
  /** The table of the dependent records: those whose cell `viaLinkFieldId` links a changed record. */
  tableId: string;
  /** A link field of `tableId` to `fromTableId`. */
  viaLinkFieldId: string;
  /** The inverse of that link, a field of `fromTableId`, if it exists: it holds the same links. */
  inverseLinkFieldId: string | undefined;
}

export interface ChangedCells {
  tableId: string;
  /** Null if every cell counts as changed, as in a record that was created or deleted. */
  fieldId: string | null;
  recordIds: readonly string[];
}

/** The dependencies in one version of a base's schema. */
export interface Dependents {
  /**
   * Returns every hop over which a change of the field can reach other records, nearest first and each once; none for a
   * field that the schema does not know. Includes the inverse of a changed link.
   */
  hops(tableId: string, fieldId: string | null): Hop[];
  /**
   * Returns the records, by table, that have to be read again because other records have changed; without those changed
   * records themselves.
   *
   * @param findLinking returns the ids of the records of `hop.tableId` whose cell `hop.viaLinkFieldId` links one of the
   *   ids
   */
  records(
    changed: readonly ChangedCells[],
    findLinking: (hop: Hop, ids: string[]) => Iterable<string> | Promise<Iterable<string>>,
  ): Promise<Map<string, Set<string>>>;
}

/**
 * Every call except `dependents` and `changesByItself` is one request of the base's quota and may throw a BasetideError
 * `source_…`: `source_forbidden` if the key lacks the scope or the role, `source_not_found` if the webhook no longer
 * exists.
 */
export interface ChangeFeed {
  /**
   * Creates a webhook for everything in the base, without a filter: a webhook on a field would go silent if the field
   * is deleted.
   *
   * @param options.notificationUrl receives a POST for each notification
   * @returns its id, the secret that signs its notifications (base64, returned only here) and when it expires, ms since
   *   1970
   */
  createWebhook(
    baseId: string,
    options: { notificationUrl?: string | undefined },
    signal: AbortSignal,
  ): Promise<{ id: string; secretBase64: string; expiresMs: number | undefined }>;
  /** Returns all webhooks that the key can see, including those of other programs. */
  listWebhooks(baseId: string, signal: AbortSignal): Promise<SourceWebhook[]>;
  /** Does nothing if the webhook no longer exists. */
  deleteWebhook(baseId: string, webhookId: string, signal: AbortSignal): Promise<void>;
  /** Extends the life of an active webhook. @returns its new expiry, ms since 1970 */
  refreshWebhook(baseId: string, webhookId: string, signal: AbortSignal): Promise<number | undefined>;
  /** Switches notifications on or off; changes are recorded either way. */
  enableNotifications(baseId: string, webhookId: string, enable: boolean, signal: AbortSignal): Promise<void>;
  /** Needs no call; the result is valid until the schema changes. */
  dependents(schema: SourceSchema): Dependents;
  /**
   * Are there cells that change although no user changes a record (they depend on the time, or are URLs that expire)?
   * No feed reports those. Needs no call.
   *
   * @param options.hasLastingUrls the source's URLs are not stored anywhere
   */
  changesByItself(schema: SourceSchema, options?: { hasLastingUrls: boolean }): boolean;
  /**
   * Are there shown cells that depend on others over a link that is not shown? The changes of those do not lead to the
   * records that depend on them. Needs no call.
   */
  hasHiddenDependencies(schema: SourceSchema, isShown: (fieldId: string) => boolean): boolean;
  /** Returns whether a cell of a record is what the feed tells of it; false if that cannot be said. Needs no call. */
  isAsTold(cell: unknown, told: unknown): boolean;
  /** Returns the changes from `cursor` (1 or more) on; also extends the webhook's life as a refresh does. */
  listPayloads(baseId: string, webhookId: string, cursor: number, signal: AbortSignal): Promise<ChangeBatch>;
}
