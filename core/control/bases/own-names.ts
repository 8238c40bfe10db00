/** The setting `own_names`: names that people have chosen for a base's tables and columns. */
import type { Context } from "../../context";
import { invalid } from "../../errors";
import {
  type ColumnSpec,
  foreignNames,
  loadCatalog,
  type OwnName,
  openReplica,
  refusalOfName,
  reservedWords,
  type TableSpec,
} from "../../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

/** A name as the API has it. */
export interface AskedName {
  table_id: string;
  /** Absent or null: the name is for the table. */
  field_id?: string | null | undefined;
  name: string;
}

export const MOST_OWN_NAMES = 5000;

/**
 * Returns the setting for these names, for a base whose tables exist. Names that the base has already are not checked
 * again: their table or field may have been deleted since.
 *
 * @throws BasetideError `invalid_request` naming the name and what is wrong with it, `replica_unavailable`
 */
export async function resolveOwnNames(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database" | "settings">,
  asked: readonly AskedName[],
): Promise<OwnName[]> {
  const wanted = asked.map(
    ({ table_id, field_id, name }): OwnName => ({ tableId: table_id, fieldId: field_id ?? null, name }),
  );
  if (wanted.length > MOST_OWN_NAMES)
    throw invalid(`A base has at most ${MOST_OWN_NAMES} names of your own. Remove some`);
  const before = new Set(base.settings.ownNames.map(keyOf));
  if (wanted.every((one) => before.has(keyOf(one)))) {
    refuseTwice(wanted);
    return wanted;
  }
  await using replica = openReplica(await replicaTarget(ctx, base));
  const tables = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
  if (tables.length === 0) throw invalid("There are no tables yet. Names can be chosen after the first sync");
  const ids = tables.map(({ tableId }) => tableId);
  const [foreign, words] = [await foreignNames(replica, ids), await reservedWords(replica)];
  checkOwnNames({ wanted, before: base.settings.ownNames, tables, foreign, words });
  return wanted;
}

interface Checked {
  wanted: readonly OwnName[];
  before: readonly OwnName[];
  tables: readonly TableSpec[];
  /** Names in the schema that objects have which are not Basetide's. */
  foreign: readonly string[];
  /** Words that Postgres reserves. */
  words: ReadonlySet<string>;
}

/** @throws BasetideError `invalid_request` */
export function checkOwnNames({ wanted, before, tables, foreign, words }: Checked): void {
  refuseTwice(wanted);
  const known = new Set(before.map(keyOf));
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  for (const one of wanted) {
    if (known.has(keyOf(one))) continue;
    const table = byId.get(one.tableId);
    if (!table) throw invalid(`The base has no table ${one.tableId} in its database`);
    const isField = ({ fieldId, filesOf }: ColumnSpec) => fieldId === one.fieldId && filesOf === undefined;
    if (one.fieldId !== null && !table.columns.some(isField))
      throw invalid(`Table ${table.name} has no field ${one.fieldId} in its database`);
    const refusal = refusalOfName(one.name, one.fieldId === null ? "table" : "column", words);
    if (refusal) throw invalid(`The name ${one.name} ${refusal}. Choose another one`);
  }
  const chosen = new Map(wanted.map(({ tableId, fieldId, name }) => [idOf(tableId, fieldId), name]));
  // A name that is no longer chosen will change.
  const nameOf = (id: string, { name, isOwnName }: Pick<TableSpec, "name" | "isOwnName">) =>
    chosen.get(id) ?? (isOwnName ? undefined : name);
  const tableNames = tables.map((table) => ({
    was: table.name,
    now: nameOf(idOf(table.tableId, null), table),
  }));
  refuseCollisions(tableNames, (name) => `Table ${name}`, foreign);
  for (const table of tables) {
    const columns = table.columns.map((column) => ({
      was: column.name,
      now: nameOf(idOf(table.tableId, column.fieldId), column),
    }));
    refuseCollisions(columns, (name) => `Column ${name} of ${table.name}`, []);
  }
}

/** @param label how an error calls what has this name */
function refuseCollisions(
  names: { was: string; now: string | undefined }[],
  label: (name: string) => string,
  foreign: readonly string[],
): void {
  const holders = new Map<string, string>();
  for (const { was, now } of names) {
    if (now === undefined) continue;
    const other = holders.get(now);
    if (other !== undefined) {
      const taker = now === was ? other : was;
      throw invalid(
        `${label(taker)} cannot be named ${now}: ${label(taker === was ? other : was)} would have this name, too. Choose another name for one of them`,
      );
    }
    holders.set(now, was);
    if (now !== was && foreign.includes(now))
      throw invalid(
        `Another object in the schema is named ${now}. Rename or drop it, or choose another name`,
      );
  }
}

function refuseTwice(wanted: readonly OwnName[]): void {
  const seen = new Set<string>();
  for (const { tableId, fieldId } of wanted) {
    const id = idOf(tableId, fieldId);
    if (seen.has(id)) throw invalid(`${id.replace(" ", ", field ")} is listed twice. Remove one`);
    seen.add(id);
  }
}

function idOf(tableId: string, fieldId: string | null): string {
  return fieldId === null ? tableId : `${tableId} ${fieldId}`;
}

function keyOf({ tableId, fieldId, name }: OwnName): string {
  return JSON.stringify([tableId, fieldId, name]);
}
