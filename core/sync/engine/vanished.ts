/**
 * Tables and fields that the replica has and that an answer of the source does not list.
 *
 * I2. Nothing that readers can see goes away because of one answer: schemas sometimes leave out what exists. What is
 * missing counts as still there until the source refuses a request for it, or until it is missing from another answer
 * much later. A table or field whose records answer is there.
 */
import { BasetideError, isBasetideError } from "../../errors";
import type { Catalog, TableSpec } from "../../replica";
import type { SourceField, SourceSchema, SourceTable } from "../../source";
import { MINUTE_MS } from "../../time-units";
import type { BaseCache } from "../state";
import { metered, type Reader } from "./reader";
import { fieldOf, tableOf } from "./recalled-schema";

/**
 * While something is missing, and for a minute after it was removed, the schema is read again after this time, ms. What is
 * missing from two answers that are at least as far apart is gone.
 */
const LOOK_AGAIN_MS = 15_000;

type Verdict = "there" | "gone" | "unknown";

interface Vanishing {
  reader: Reader;
  cache: BaseCache;
  catalog: Catalog;
}

/** Returns the answer, with those missing tables and fields that may still be there. */
export async function withVanished(vanishing: Vanishing, answer: SourceSchema): Promise<SourceSchema> {
  const { reader, cache, catalog } = vanishing;
  const listed = new Map((answer.whole ?? answer.tables).map((table) => [table.id, table]));
  const before = new Map(cache.schema?.tables.map((table) => [table.id, table]));
  const isEmpty = listed.size === 0;
  const seen = new Set<string>();
  const isKept = async (key: string, ask: () => Promise<Verdict>): Promise<boolean> => {
    seen.add(key);
    const now = performance.now();
    const since = cache.vanishedAt.get(key) ?? now;
    cache.vanishedAt.set(key, since);
    if (isEmpty && now - since < cache.emptySpellMs) return true;
    const verdict = await ask();
    if (verdict === "there" || (verdict === "unknown" && now - since < LOOK_AGAIN_MS)) return true;
    cache.vanishedAt.delete(key);
    cache.removedAt = performance.now();
    return false;
  };
  const keptTables: SourceTable[] = [];
  const keptFields = new Map<string, SourceField[]>();
  await Promise.all(
    [...catalog.values()].map(async ({ spec }) => {
      const known = before.get(spec.tableId) ?? tableOf(spec);
      const table = listed.get(spec.tableId);
      if (!table) {
        if (await isKept(spec.tableId, () => askTable(reader, known))) keptTables.push(known);
        return;
      }
      const fields = new Set(table.fields.map(({ id }) => id));
      const missing = fieldsOf(spec, known).filter(({ id }) => !fields.has(id));
      const kept = await Promise.all(
        missing.map((field) => isKept(`${table.id} ${field.id}`, () => askField(reader, known, field))),
      );
      if (kept.includes(true)) {
        keptFields.set(
          table.id,
          missing.filter((_, index) => kept[index]),
        );
      }
    }),
  );
  for (const key of cache.vanishedAt.keys()) if (!seen.has(key)) cache.vanishedAt.delete(key);
  const isWatching = cache.vanishedAt.size > 0 || performance.now() - cache.removedAt < MINUTE_MS;
  cache.schemaLookAt = isWatching ? performance.now() + LOOK_AGAIN_MS : Number.POSITIVE_INFINITY;
  if (keptTables.length === 0 && keptFields.size === 0) return answer;
  reader.log.warn(
    { tables: keptTables.map(({ id }) => id), fields: [...keptFields.values()].flat().map(({ id }) => id) },
    "Airtable's schema lacks tables or fields that may still exist; they are kept",
  );
  const completed = (tables: SourceTable[]) => [
    ...tables.map((table) => {
      const kept = keptFields.get(table.id);
      return kept ? { ...table, fields: [...table.fields, ...kept] } : table;
    }),
    ...keptTables,
  ];
  return {
    ...answer,
    tables: completed(answer.tables),
    ...(answer.whole && { whole: completed(answer.whole) }),
  };
}

function askTable(reader: Reader, table: SourceTable): Promise<Verdict> {
  return asked(reader, table, undefined, (error) =>
    isBasetideError(error, "source_forbidden") || isBasetideError(error, "source_not_found")
      ? "gone"
      : "unknown",
  );
}

/**
 * A table that cannot be read says nothing about a field. With one that is gone by now, the field is: kept, it would show the
 * rows that were read after its end without a value, beside the others.
 */
function askField(reader: Reader, table: SourceTable, field: SourceField): Promise<Verdict> {
  return asked(reader, { ...table, fields: [field] }, field.id, (error) =>
    isBasetideError(error, "source_not_found") ? "gone" : "unknown",
  );
}

/** Requests a page of the table, of one field only if one is given. */
async function asked(
  reader: Reader,
  table: SourceTable,
  fieldId: string | undefined,
  onError: (error: unknown) => Verdict,
): Promise<Verdict> {
  try {
    const page = await metered({ ...reader, mayTryAgain: () => false }, "schema").send((source, signal) =>
      source.listPage(reader.sourceBaseId, table, fieldId === undefined ? {} : { fields: [fieldId] }, signal),
    );
    if (fieldId === undefined) return "there";
    for (let index = 0; index < page.size; index++) {
      if (page.record(index).fields[fieldId] !== undefined) return "there";
    }
    // All its cells may be empty.
    return "unknown";
  } catch (error) {
    if (isBasetideError(error, "source_schema_changed") || isBasetideError(error, "source_rejected"))
      return "gone";
    if (error instanceof BasetideError && error.code.startsWith("source_")) return onError(error);
    throw error;
  }
}

/** Returns the table's fields that have columns, as the schema last listed them. */
function fieldsOf({ columns }: TableSpec, { fields }: SourceTable): SourceField[] {
  const known = new Map(fields.map((field) => [field.id, field]));
  return columns
    .filter(({ filesOf }) => filesOf === undefined)
    .map((column) => known.get(column.fieldId) ?? fieldOf(column));
}
