/**
 * What a change of a setting does: to a running sync, and, before it is made, the columns that get another type and the
 * calls that reading them again takes.
 */

import { columnTypeOf, type TableSpec } from "../../replica";
import type { Base } from "./base-row";
import type { Setting } from "./setting-values";
import type { BaseSettings, Interrupts, RetypingSetting } from "./settings";

export interface ChangeEffect {
  /** Columns that get another type, or whose cells are written again. */
  columns: number;
  tables: number;
  records: number;
  /** Calls to the source, about. */
  calls: number;
}

/** Returns the effect of a resync, which reads every table. @param pageSize of the source */
export function resyncEffect(base: Pick<Base, "tables">, pageSize: number): ChangeEffect {
  return effectOn(base.tables, 0, pageSize);
}

/** Returns the effect of changing one setting. @param tables of the replica */
export function settingEffect(
  base: Pick<Base, "settings" | "tables">,
  tables: TableSpec[],
  change: Partial<Pick<BaseSettings, RetypingSetting>>,
  pageSize: number,
): ChangeEffect {
  const settings = { ...base.settings, ...change };
  const ofAttachments = change.ownAttachmentUrls ?? change.attachmentViews;
  let columns = 0;
  const affected = new Set<string>();
  for (const table of tables) {
    for (const column of table.columns) {
      if (column.filesOf !== undefined) continue;
      const isAffected =
        ofAttachments === undefined
          ? columnTypeOf(column, settings) !== column.columnType
          : column.type === "attachment";
      if (!isAffected) continue;
      columns++;
      affected.add(table.name);
    }
  }
  const effect = effectOn(
    base.tables.filter(({ name }) => affected.has(name)),
    columns,
    pageSize,
  );
  // Views and their columns are dropped in place.
  return change.attachmentViews === false ? { ...effect, calls: 0 } : effect;
}

function effectOn(tables: Base["tables"], columns: number, pageSize: number): ChangeEffect {
  let [records, calls] = [0, 0];
  for (const table of tables) {
    records += table.records;
    // The last page of a table may be empty.
    calls += Math.max(1, Math.ceil(table.records / pageSize));
  }
  // One more call for the schema.
  return { columns, tables: tables.length, records, calls: tables.length === 0 ? 0 : calls + 1 };
}

/** What a change of a setting does to a running sync. */
export const interruption: Record<Interrupts, string> = {
  nothing: "",
  updates: "A running sync starts over, unless it is a first sync or a rebuild.",
  "every sync": "A running sync starts over.",
};

/** Returns the console's notice after a setting was changed. */
export function savedText({ interrupts }: Setting): string {
  return `Saved. ${interruption[interrupts]}`.trim();
}
