/** Converts the settings of a base to columns, JSON and audit details, by the table of settings. */

import type { PendingQuery, Row } from "postgres";
import { toCamelCase } from "../../camel-case";
import type { Db } from "../../context";
import { cutText } from "../../cut-text";
import { jsonParameter } from "../../postgres";
import type { OwnName } from "../../replica";
import type { IndexSetting } from "../../sync/host";
import type { AuditDetails } from "../audit";
import type { AskedIndex } from "./indexes";
import type { AskedField, MutedField } from "./muted-fields";
import type { AskedName } from "./own-names";
import {
  type BaseSettings,
  type Interrupts,
  type RetypingSetting,
  type SettingName,
  type SettingSpec,
  type SettingsOfType,
  type SettingsRow,
  settings,
} from "./settings";

/** A row of the table with its names: in the API (`name`), in code (`key`), and in SQL (`column`). */
export type Setting = SettingSpec & { name: SettingName; key: keyof BaseSettings; column: keyof SettingsRow };

export const settingList: readonly Setting[] = Object.entries<SettingSpec>(settings).map(
  ([name, spec]) => ({ column: name, ...spec, name, key: toCamelCase(name) }) as Setting,
);

/** Settings of which a change reads tables again. */
export const retypingSettings = settingList
  .filter(({ interrupts }) => interrupts === "every sync")
  .map(({ key }) => key as RetypingSetting);

/** Returns undefined if no setting has the name. */
export function settingByName(name: string): Setting | undefined {
  return settingList.find((setting) => setting.name === name);
}

/** Settings as the API shows them. */
type SettingsJson = {
  [Name in SettingName]: Name extends SettingsOfType<"boolean">
    ? boolean
    : Name extends SettingsOfType<"integer">
      ? number
      : Name extends SettingsOfType<"names">
        ? Required<AskedName>[]
        : Name extends SettingsOfType<"fields">
          ? AskedField[]
          : Required<AskedIndex>[];
};

/** Settings that are lists, whose columns are JSON: an entry in the API, and in the audit log. */
const lists = {
  indexes: {
    json: ({ table, column, kind }: IndexSetting): Required<AskedIndex> => ({ table, column, kind }),
    text: ({ table, column }: IndexSetting) => `${table}.${column}`,
  },
  names: {
    json: ({ tableId, fieldId, name }: OwnName): Required<AskedName> => ({
      table_id: tableId,
      field_id: fieldId,
      name,
    }),
    text: ({ tableId, fieldId, name }: OwnName) =>
      `${fieldId === null ? tableId : `${tableId}.${fieldId}`}: ${name}`,
  },
  fields: {
    json: ({ tableId, fieldId }: MutedField): AskedField => ({ table_id: tableId, field_id: fieldId }),
    text: ({ tableId, fieldId }: MutedField) => `${tableId}.${fieldId}`,
  },
};

/** Undefined for a setting that is no list. */
function listOf(type: SettingSpec["type"]) {
  type Entry = { json(entry: unknown): unknown; text(entry: unknown): string };
  return (lists as Partial<Record<SettingSpec["type"], unknown>>)[type] as Entry | undefined;
}

/** The settings among a base's columns. */
export function settingsOf(row: SettingsRow): BaseSettings {
  return Object.fromEntries(settingList.map(({ key, column }) => [key, row[column]])) as BaseSettings;
}

/** The columns, for a list of a statement. */
export function settingColumns(db: Db) {
  return joined(
    db,
    settingList.map(({ column }) => db`${db(column)}`),
  );
}

/** The values of a new base, in the order of `settingColumns`. */
export function settingValues(db: Db, given: Partial<BaseSettings>) {
  return joined(
    db,
    settingList.map((setting) => parameter(db, setting, given[setting.key] ?? setting.default)),
  );
}

/** The assignments of an update of `bases`: only given settings change. */
export function settingAssignments(db: Db, given: Partial<BaseSettings>) {
  return joined(
    db,
    settingList.map((setting) => {
      const column = db(setting.column);
      return db`${column} = coalesce(${parameter(db, setting, given[setting.key])}, ${column})`;
    }),
  );
}

function parameter(db: Db, { type }: Setting, value: unknown) {
  if (listOf(type)) return db`${value === undefined ? null : jsonParameter(value)}::text::jsonb`;
  return db`${(value as boolean | number | undefined) ?? null}`;
}

function joined(db: Db, parts: PendingQuery<Row[]>[]) {
  return parts.reduce((all, part) => db`${all}, ${part}`);
}

export function settingsJson(values: BaseSettings): SettingsJson {
  const entries = settingList.map(({ name, key, type }) => {
    const list = listOf(type);
    return [name, list ? (values[key] as unknown[]).map(list.json) : values[key]];
  });
  return Object.fromEntries(entries) as SettingsJson;
}

/**
 * Returns the boolean and integer settings of an API request; the others need the base (`resolveIndexes`,
 * `resolveOwnNames`, `resolveMutedFields`).
 */
export function settingsFromJson(
  json: Partial<Omit<SettingsJson, "indexes" | "own_names" | "muted_fields">>,
): Partial<BaseSettings> {
  const given = settingList.filter(
    ({ name, type }) => !listOf(type) && json[name as keyof typeof json] !== undefined,
  );
  return Object.fromEntries(given.map(({ name, key }) => [key, json[name as keyof typeof json]]));
}

/** Returns changes of settings as the audit log shows them. */
export function settingDetails(changes: Partial<BaseSettings>): AuditDetails {
  const given = settingList.filter(({ key }) => changes[key] !== undefined);
  return Object.fromEntries(
    given.map(({ name, key, type }) => {
      const list = listOf(type);
      return [
        name,
        list
          ? inShort((changes[key] as unknown[]).map(list.text).join(", "))
          : (changes[key] as boolean | number),
      ];
    }),
  );
}

/** Returns what a change from `before` to `now` interrupts: the most that any changed setting does. */
export function interruptedBy(before: BaseSettings, now: BaseSettings): Interrupts {
  const changed = settingList.filter(
    ({ key, interrupts }) => interrupts !== "nothing" && !Bun.deepEquals(before[key], now[key]),
  );
  if (changed.some(({ interrupts }) => interrupts === "every sync")) return "every sync";
  return changed.length > 0 ? "updates" : "nothing";
}

/** Values of the audit log are short. */
function inShort(text: string): string {
  return text.length > 1000 ? `${cutText(text, 1000)}…` : text;
}
