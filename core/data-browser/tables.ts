/** The tables of a base that can be read now. */
import type { Base, TableCount } from "../control/bases";

/** Those of the last sync, and during the first one those that are complete; by their names in the source. */
export function browsableTables({
  tables,
  progress,
}: Pick<Base, "tables" | "progress">): Omit<TableCount, "source_id">[] {
  const known = new Set(tables.map(({ name }) => name));
  const complete = (progress?.tables ?? [])
    .filter(({ name, done }) => done && !known.has(name))
    .map(({ name, source_name, records_done }) => ({ name, source_name, records: records_done }));
  return [...tables, ...complete].sort((one, other) =>
    one.source_name.localeCompare(other.source_name, "en"),
  );
}
