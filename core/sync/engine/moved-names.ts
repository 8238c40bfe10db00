/**
 * Names that have moved: in the source they belong to another table or field than in the replica's catalog.
 *
 * Until the catalog is updated, a proxied write that uses such a name may be shown in the wrong table or column. So
 * the records of those tables that are in the recent-writes log are read again by id.
 */
import { type Catalog, type Replica, writesSince } from "../../replica";
import type { SourceSchema } from "../../source";

/** For each table whose writes may be misplaced: the tables that they may belong to, including itself. */
export type MovedNames = ReadonlyMap<string, ReadonlySet<string>>;

/** A record that must be read again, as a record of this table. */
export interface Misplaced {
  tableId: string;
  recordId: string;
}

export function movedNames(catalog: Catalog, { tables }: SourceSchema): MovedNames {
  const moved = new Map<string, Set<string>>();
  const add = (from: string, to: string) => moved.set(from, (moved.get(from) ?? new Set([from])).add(to));
  for (const [tableId, { spec }] of catalog) {
    // Requests may write a table's name in different case.
    const name = spec.sourceName.toLowerCase();
    for (const { id } of tables.filter((table) => table.name.toLowerCase() === name)) {
      if (id !== tableId) add(tableId, id);
    }
    const fields = new Map(
      tables.find(({ id }) => id === tableId)?.fields.map((field) => [field.name, field.id]),
    );
    const columns = spec.columns.filter(({ filesOf }) => filesOf === undefined);
    if (columns.some(({ sourceName, fieldId }) => (fields.get(sourceName) ?? fieldId) !== fieldId))
      add(tableId, tableId);
  }
  return moved;
}

/** Returns the records that were recently written in tables of any of these moves. */
export async function misplacedWrites(replica: Replica, moves: MovedNames[]): Promise<Misplaced[]> {
  if (moves.every((moved) => moved.size === 0)) return [];
  const found = new Map<string, Misplaced>();
  for (const { tableId, recordId } of await writesSince(replica, 0)) {
    for (const moved of moves) {
      for (const to of moved.get(tableId) ?? []) found.set(`${to} ${recordId}`, { tableId: to, recordId });
    }
  }
  return [...found.values()];
}
