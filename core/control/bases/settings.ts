/**
 * The settings of a base: the single table from which their columns, API fields, forms, and docs are made.
 *
 * A new setting is a row here and a migration that adds its column (CONTRIBUTING, "Add a setting").
 */
import type { IndexSetting } from "./indexes";

/** The parts of the settings page, in its order. */
export const settingSections = {
  speed: "Speed",
  advanced: "Advanced",
  analysts: "For analysts",
  indexes: "Indexes",
  attachments: "Attachments",
  reads: "Reads through the proxy",
} as const;

/**
 * Which running syncs a change ends, to start another one: none; those that update tables; or all, also a first sync
 * or a rebuild.
 */
export type Interrupts = "nothing" | "updates" | "every sync";

interface Row {
  /** In `bases`; the setting's name unless given. */
  column?: string;
  /** Where the settings page shows it; undefined for a setting that has a button elsewhere. */
  section?: keyof typeof settingSections;
  label: string;
  /** What the settings page says below the label. Text between backticks is code. */
  hint: string;
  /** What it does, in a sentence or two: for the docs and for the API's reference. Text between backticks is code. */
  effect: string;
  /** Where docs say more, as seen from their folder. */
  docs?: string;
  interrupts: Interrupts;
}

export type SettingSpec = Row &
  (
    | { type: "boolean"; default: boolean }
    | { type: "integer"; default: number; minimum: number; maximum: number; unit: string }
    | { type: "indexes"; default: readonly [] }
  );

/** By name: that of the API's field, and the key in `BaseSettings` in camel case. */
export const settings = {
  live: {
    type: "boolean",
    default: true,
    section: "speed",
    label: "Live changes",
    hint: "Airtable reports each change, and it is in SQL within a second or two, however large the base is. Needs a key that may manage webhooks. With any other key, all tables are read again and again.",
    effect:
      "Airtable reports changes, where the key may manage webhooks. `rapid` takes precedence while it is on.",
    docs: "syncing.md#live-mode",
    interrupts: "updates",
  },
  turbo: {
    type: "boolean",
    default: false,
    section: "speed",
    label: "Turbo",
    hint: "Sync uses up to 5 requests a second, all that Airtable allows, instead of 3. With live changes that applies to first syncs, rebuilds and reading changed records again; the sweep that follows a gap in the feed reads one table at a time and gets as many as Airtable's response times allow; the check in the background keeps to one request a second. Use it when you read from the database and write only through the proxy. Leave it off where other integrations call the same base.",
    effect:
      "Sync uses up to 5 requests a second, all that Airtable allows for a base, instead of 3. The background check of live mode keeps to one.",
    docs: "syncing.md#turbo",
    interrupts: "nothing",
  },
  linked_records_as_text: {
    type: "boolean",
    default: false,
    section: "advanced",
    label: "Linked records as text",
    hint: "Columns of linked records become `text` with the first link instead of `text[]` with all of them. The tables concerned are rebuilt.",
    effect:
      "Columns of linked records are `text`, the first one, instead of `text[]`. Rebuilds the tables concerned.",
    interrupts: "every sync",
  },
  lookups_as_text: {
    type: "boolean",
    default: false,
    section: "advanced",
    label: "Lookups as text",
    hint: "Lookup columns become `text` with the first value instead of `text[]` with all of them. The tables concerned are rebuilt.",
    effect: "Lookup columns are `text`, the first value, instead of `text[]`. Rebuilds the tables concerned.",
    interrupts: "every sync",
  },
  rapid: {
    type: "boolean",
    default: false,
    section: "advanced",
    label: "Rapid creates and updates",
    hint: "Creates and updates are shown within seconds. Deletes and computed fields take longer: about 10 minutes for 30,000 records. Use it when slow deletes are fine, few computed fields are used, and the key may not manage webhooks. While it is on, it replaces live changes.",
    effect: "Creates and updates come first; deletes and computed fields take longer. It replaces `live`.",
    docs: "syncing.md#rapid-mode",
    interrupts: "updates",
  },
  link_views: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "Views over links",
    hint: "For each column of linked records there is a view, called `table__column`, with one row per link, ready to be joined.",
    effect: "A view `table__column` for each array of links, with one row per link.",
    docs: "sql.md#views-over-links",
    interrupts: "nothing",
  },
  history: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "History of changes",
    hint: "Every change of a record is kept in the table `_sync_history`: old and new values, when it was seen, and whether a sync or a write through the proxy made it.",
    effect: "Changes of records are kept in the table `_sync_history`.",
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
    effect: "How many days a change stays in `_sync_history`.",
    docs: "sql.md#history",
    interrupts: "nothing",
  },
  notify: {
    type: "boolean",
    default: false,
    section: "analysts",
    label: "Notifications",
    hint: "Sessions that ran `LISTEN basetide` in the database receive the table and the ids of the records that changed.",
    effect: "Changes of records are sent to sessions that listen to the channel `basetide`.",
    docs: "sql.md#listening-for-changes",
    interrupts: "nothing",
  },
  indexes: {
    type: "indexes",
    default: [],
    section: "indexes",
    label: "Indexed columns",
    hint: "One per line, as `table.column`: a B-tree, or GIN where the column is an array. Add `trigram` for searches with `like '%…%'`, where the database has the extension `pg_trgm`. Indexes are built without blocking readers, and stay through renames and rebuilds.",
    effect:
      "Columns that have an index, through every change of their tables. Can be set once the first sync has completed.",
    docs: "sql.md#indexes",
    interrupts: "nothing",
  },
  own_attachment_urls: {
    type: "boolean",
    default: false,
    section: "attachments",
    label: "Attachment links that last",
    hint: "Stores permanent links of this console instead of Airtable's, which expire after about two hours. Anyone with a link can open the file. The rows concerned are read and written again.",
    effect:
      "Attachments are stored as signed links of the console, which lead to fresh ones of Airtable. The rows concerned are read and written again.",
    docs: "attachments.md",
    interrupts: "every sync",
  },
  replica_reads: {
    type: "boolean",
    default: false,
    section: "reads",
    label: "Reads from the replica",
    hint: "Reads through the proxy with the key that this base is synced with are answered from the database where it holds everything that was asked for, and use none of Airtable's calls; the response header `x-basetide-answered-by` names who answered. Clients with other keys, and all clients while this is off, ask for it with the header `x-basetide-read: replica`. A database of your own, or a writable one, answers no reads.",
    effect:
      "Reads through the proxy with the base's own key are answered from Postgres where that is exact; a response header names who answered.",
    docs: "proxy.md#reads-from-the-replica",
    interrupts: "nothing",
  },
  paused: {
    type: "boolean",
    default: false,
    column: "is_paused",
    label: "Paused",
    hint: "Syncing is paused. The database stays readable as it is.",
    effect: "No requests to Airtable; a running sync stops. The replica stays readable.",
    // A paused base has no sync to start again: the lease ends by the base's state.
    interrupts: "nothing",
  },
} as const satisfies Record<string, SettingSpec>;

type Settings = typeof settings;
export type SettingName = keyof Settings;

/** `link_views` → `linkViews`. */
type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

interface Values {
  boolean: boolean;
  integer: number;
  indexes: IndexSetting[];
}
type ValueOf<Name extends SettingName> = Values[Settings[Name]["type"]];
type ColumnOf<Name extends SettingName> = Settings[Name] extends { column: infer Column extends string }
  ? Column
  : Name;

/** The settings of a base, as code reads them. */
export type BaseSettings = { [Name in SettingName as CamelCase<Name>]: ValueOf<Name> };

/** The columns of `bases` that hold settings. */
export type SettingsRow = { [Name in SettingName as ColumnOf<Name>]: ValueOf<Name> };

/** Names of the settings that have values of a type. */
export type SettingsOfType<Type extends SettingSpec["type"]> = {
  [Name in SettingName]: Settings[Name]["type"] extends Type ? Name : never;
}[SettingName];
