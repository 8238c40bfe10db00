/**
 * The settings of a base: the single table from which their columns, API fields, forms and docs are generated.
 *
 * A new setting is a row here and a migration that adds its column (CONTRIBUTING, "Add a setting").
 */
import type { CamelCase } from "../../camel-case";
import type { OwnName } from "../../replica";
import type { IndexSetting } from "../../sync/host";
import type { MutedField } from "./muted-fields";

/** The parts of the settings page, in its order. */
export const settingSections = {
  speed: "Speed",
  names: "Columns and names",
  analysts: "For analysts",
  attachments: "Attachments",
  proxy: "Proxy",
} as const;

/** Which running syncs a change of the setting restarts: none, those that update tables, or also first syncs and rebuilds. */
export type Interrupts = "nothing" | "updates" | "every sync";

interface Row {
  /** The column in `bases`; defaults to the setting's name. */
  column?: string;
  /** The section of the settings page; undefined for a setting that has a button elsewhere. */
  section?: keyof typeof settingSections;
  label: string;
  /** Below the label on the settings page: the first sentence in one line, the others on demand. Text between backticks is code. */
  hint: string;
  /** The effect in a sentence or two, for the docs and the API reference. Text between backticks is code. */
  effect: string;
  /** A link to more documentation, relative to docs/. */
  docs?: string;
  interrupts: Interrupts;
}

export type SettingSpec = Row &
  (
    | { type: "boolean"; default: boolean }
    | { type: "integer"; default: number; minimum: number; maximum: number; unit: string }
    | { type: "indexes"; default: readonly [] }
    | { type: "names"; default: readonly [] }
    | { type: "fields"; default: readonly [] }
  );

/** By name: the name of the API's field, and in camel case the key in `BaseSettings`. */
export const settings = {
  live: {
    type: "boolean",
    default: true,
    section: "speed",
    label: "Live changes",
    hint: "Airtable reports each change, and it is in SQL within a second or two. The size of the base does not matter. Requires a key that may manage webhooks. With any other key, Basetide sweeps all tables continuously.",
    effect: "Airtable reports changes, if the key may manage webhooks. `rapid` takes precedence.",
    docs: "syncing.md#live-mode",
    interrupts: "updates",
  },
  turbo: {
    type: "boolean",
    default: false,
    section: "speed",
    label: "Turbo",
    hint: "Sync uses up to 5 requests a second, all that Airtable allows, instead of 3. With live changes, this applies to first syncs, rebuilds and changed records that are read again. The sweep after a gap in the feed reads one table at a time, so its speed depends on Airtable's response time. Full checks in the background always make one request a second. Turn Turbo on if you read from the database and write only through the proxy. Leave it off if other integrations call the same base.",
    effect:
      "Sync uses up to 5 requests a second, all that Airtable allows for a base, instead of 3. Full checks of live mode always use one.",
    docs: "syncing.md#turbo",
    interrupts: "nothing",
  },
  rapid: {
    type: "boolean",
    default: false,
    section: "speed",
    label: "Rapid creates and updates",
    hint: "Creates and updates arrive within seconds. Deletes and computed fields take longer: about 10 minutes for 30,000 records. Use it if slow deletes are acceptable, the base has few computed fields, and the key may not manage webhooks. It replaces live changes.",
    effect: "Creates and updates arrive first; deletes and computed fields take longer. Replaces `live`.",
    docs: "syncing.md#rapid-mode",
    interrupts: "updates",
  },
  linked_records_as_text: {
    type: "boolean",
    default: false,
    section: "names",
    label: "Linked records as text",
    hint: "Columns of linked records are `text` with the first link. Off, they are `text[]` with all links. Affected tables are rebuilt.",
    effect:
      "Columns of linked records are `text` with the first link instead of `text[]`. Rebuilds affected tables.",
    interrupts: "every sync",
  },
  lookups_as_text: {
    type: "boolean",
    default: false,
    section: "names",
    label: "Lookups as text",
    hint: "Lookup columns are `text` with the first value. Off, they are `text[]` with all values. Affected tables are rebuilt.",
    effect: "Lookup columns are `text` with the first value instead of `text[]`. Rebuilds affected tables.",
    interrupts: "every sync",
  },
  pinned_names: {
    type: "boolean",
    default: false,
    section: "names",
    label: "Pinned names",
    hint: "Tables and columns keep their names when they are renamed in Airtable. Only the comment and the console show the new name. New tables and fields get names that none had before. When you turn it off, tables and columns that were renamed meanwhile get the names that follow from Airtable's.",
    effect:
      "Tables and columns keep their names when they are renamed in Airtable; only their comments change.",
    docs: "names.md#pinned-names",
    interrupts: "updates",
  },
  alias_days: {
    type: "integer",
    default: 7,
    minimum: 0,
    maximum: 365,
    unit: "days",
    section: "names",
    label: "Days that old names answer",
    hint: "The old name of a renamed table or column works for so long. It ends earlier if another table or column needs the name. 0: it stops working at once.",
    effect:
      "Number of days that the old name of a renamed table or column still works. 0: it stops working at once.",
    docs: "names.md#old-names",
    interrupts: "nothing",
  },
  own_names: {
    type: "names",
    default: [],
    label: "Own names",
    hint: "The names that you have chosen for tables and columns.",
    effect:
      "Names of your own for tables and columns, by Airtable's ids. They stay until you change them. Available after the first sync.",
    docs: "names.md#own-names",
    interrupts: "updates",
  },
  link_views: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "Views over links",
    hint: "Creates a view `table__column` for each column of linked records, one row per link.",
    effect: "Creates a view `table__column` for each array of links, with one row per link.",
    docs: "sql.md#views-over-links",
    interrupts: "nothing",
  },
  history: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "History of changes",
    hint: "Records every change of a record in the table `_sync_history`. It has old and new values, when Basetide saw the change, and whether it came from a sync or from a write through the proxy.",
    effect: "Records changes of records in the table `_sync_history`.",
    docs: "sql.md#history",
    interrupts: "nothing",
  },
  history_days: {
    type: "integer",
    default: 30,
    minimum: 1,
    maximum: 3650,
    unit: "days",
    section: "analysts",
    label: "Days of history",
    hint: "Changes stay in `_sync_history` for 1 to 3,650 days. Existing history is kept for that long even if you turn history off.",
    effect: "Number of days that a change stays in `_sync_history`.",
    docs: "sql.md#history",
    interrupts: "nothing",
  },
  notify: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "Notifications",
    hint: "Sessions that ran `LISTEN basetide` receive the table and the ids of changed records.",
    effect: "Sends changes of records to sessions that listen to the channel `basetide`.",
    docs: "sql.md#listening-for-changes",
    interrupts: "nothing",
  },
  indexes: {
    type: "indexes",
    default: [],
    section: "analysts",
    label: "Indexed columns",
    hint: "A B-tree for each column, or GIN if it is an array. A trigram index is for searches with `like '%…%'`, if the database has the extension `pg_trgm`. Building an index does not block readers. Indexes survive renames and rebuilds.",
    effect: "Columns with an index, which survives renames and rebuilds. Available after the first sync.",
    docs: "sql.md#indexes",
    interrupts: "nothing",
  },
  muted_fields: {
    type: "fields",
    default: [],
    label: "Muted fields",
    hint: "Fields whose issues are not counted.",
    effect:
      "Fields, by Airtable's ids, whose issues do not count, and are listed apart. They stay in `_sync_issues`. Available after the first sync.",
    docs: "sql.md#cells-that-do-not-fit",
    interrupts: "nothing",
  },
  attachment_views: {
    type: "boolean",
    default: false,
    section: "attachments",
    label: "Views over attachments",
    hint: "Creates a view `table__column` for each column of attachments, one row per file. It has the file's name, type, size, dimensions and link. Tables with attachments are read again.",
    effect:
      "Creates a view `table__column` for each column of attachments, with one row per file: name, type, size, dimensions and URL. Reads tables with attachments again.",
    docs: "attachments.md#views-over-attachments",
    interrupts: "every sync",
  },
  own_attachment_urls: {
    type: "boolean",
    default: false,
    section: "attachments",
    label: "Attachment links that last",
    hint: "Stores permanent links of this console instead of Airtable's. Those expire after about two hours. Anyone with a link can open the file. Affected rows are read and written again.",
    effect:
      "Stores attachments as signed links of the console, which redirect to current URLs of Airtable. Affected rows are read and written again.",
    docs: "attachments.md",
    interrupts: "every sync",
  },
  replica_reads: {
    type: "boolean",
    default: false,
    section: "proxy",
    label: "Reads from the replica",
    hint: "The proxy answers reads from the database if it holds everything that they need. These reads use no Airtable calls. This applies to requests with the API key of this base. Clients with other keys, and all clients while this is off, can request it with the header `x-basetide-read: replica`. The response header `x-basetide-answered-by` says who answered. Writable databases and databases that you host answer no reads.",
    effect:
      "The proxy answers reads with the base's own key from Postgres if the answer is exact; a response header says who answered.",
    docs: "proxy.md#reads-from-the-replica",
    interrupts: "nothing",
  },
  coalesce_writes: {
    type: "boolean",
    default: false,
    section: "proxy",
    label: "Write coalescing",
    hint: "Creates and updates of single records share calls to Airtable of up to ten records. They do if they arrive at the proxy within 25 ms, or while they wait for Airtable's rate limit. Each client gets the response that its own call would have had. 5 calls a second then carry up to 50 writes. Turn this on if many clients write single records. A write that does not have to wait takes 25 ms longer.",
    effect:
      "The proxy sends creates and updates of single records to Airtable in calls of up to ten, and answers each client as if its call had been sent alone.",
    docs: "proxy.md#write-coalescing",
    interrupts: "nothing",
  },
  change_sets: {
    type: "boolean",
    default: false,
    section: "proxy",
    label: "Change sets",
    hint: "Basetide changes records in Airtable, many at a time, with the API key of this base. Members who may change this base and API tokens with the scope write can ask for it. Each set is recorded with its author and its results, and can be undone.",
    effect:
      "Allows change sets: changes of records that Basetide makes in Airtable with the base's own key, and can undo.",
    docs: "change-sets.md",
    interrupts: "nothing",
  },
  sql_writes: {
    type: "boolean",
    default: false,
    section: "proxy",
    label: "Writes with SQL",
    hint: "SQL users that may write can insert, update and delete in views of the schema `write`. Basetide makes the changes in Airtable with the API key of this base, and Airtable's errors are those of the statement. The database itself stays a read-only copy.",
    effect:
      "Creates the schema `write`, with a view for each table. What SQL users write there is written to Airtable, with the base's own key. Available after the first sync.",
    docs: "sql-writes.md",
    interrupts: "nothing",
  },
  sql_writes_queued: {
    type: "boolean",
    default: false,
    section: "proxy",
    label: "Queued writes with SQL",
    hint: "Writes with SQL are asynchronous: COMMIT returns before Airtable has them, and errors of Airtable are in the view `write.log` only. For databases whose server cannot connect to Basetide. Takes effect with “Writes with SQL”.",
    effect:
      "Makes `sql_writes` asynchronous, for databases whose server cannot connect to Basetide: COMMIT returns before Airtable has the writes, and what becomes of them is in `write.log`.",
    docs: "sql-writes.md#where-the-server-cannot-connect-back",
    interrupts: "nothing",
  },
  paused: {
    type: "boolean",
    default: false,
    column: "is_paused",
    label: "Paused",
    hint: "Syncing is paused. The database stays readable as it is.",
    effect: "Stops the running sync and all requests to Airtable. The database stays readable.",
    // A paused base has no sync to restart: the lease ends because of the base's state.
    interrupts: "nothing",
  },
} as const satisfies Record<string, SettingSpec>;

type Settings = typeof settings;
export type SettingName = keyof Settings;

interface Values {
  boolean: boolean;
  integer: number;
  indexes: IndexSetting[];
  names: OwnName[];
  fields: MutedField[];
}
type ValueOf<Name extends SettingName> = Values[Settings[Name]["type"]];
type ColumnOf<Name extends SettingName> = Settings[Name] extends { column: infer Column extends string }
  ? Column
  : Name;

/** The settings of a base, as used in code. */
export type BaseSettings = { [Name in SettingName as CamelCase<Name>]: ValueOf<Name> };

/** The columns of `bases` that hold settings. */
export type SettingsRow = { [Name in SettingName as ColumnOf<Name>]: ValueOf<Name> };

/** Keys of the settings of which a change restarts every sync, because it reads tables again. */
export type RetypingSetting = {
  [Name in SettingName]: Settings[Name]["interrupts"] extends "every sync" ? CamelCase<Name> : never;
}[SettingName];

/** Names of the settings that have values of a type. */
export type SettingsOfType<Type extends SettingSpec["type"]> = {
  [Name in SettingName]: Settings[Name]["type"] extends Type ? Name : never;
}[SettingName];
