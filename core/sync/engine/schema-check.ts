/**
 * Detects records that do not match the schema that they are mapped with: the source's schema may change at any
 * moment, and only the records in its lists show that.
 *
 * I6. A cell that its column cannot hold is written as NULL only if two answers in a row had such cells in the column,
 * and schema checks before and after the second one found the same schema. One check is not enough: a field that was
 * retyped and retyped back has its former type again when the check is made.
 */
import { BasetideError } from "../../errors";
import {
  type CellIssue,
  type ColumnSpec,
  hasSameColumns,
  NOT_A_NUMBER,
  onlyAddsColumns,
  ROW_TOO_WIDE,
  type TableSpec,
  traitsOf,
  UNSTORABLE_TEXT,
} from "../../replica";
import type { SourceRecord } from "../../source";
import type { BaseCache } from "../state";
import type { SchemaTracker } from "./schema-tracker";

/** Reasons that are independent of the field's type. */
const OF_ANY_TYPE: ReadonlySet<string> = new Set([UNSTORABLE_TEXT, ROW_TOO_WIDE]);

/** The schema does not explain the cells of some records: they must be read again. */
class UnexplainedCells extends Error {}

interface SchemaCheck {
  schemaTracker: SchemaTracker;
  cache: BaseCache;
  /**
   * Set when records may be written without columns that the table is about to get: its existing columns are kept up
   * to date meanwhile.
   */
  isWithoutNew?: boolean | undefined;
}

/**
 * Runs a schema check if `records` contain fields that `spec` does not have, or cells that its types cannot hold. The
 * latter until a column has such cells for good: then no longer in this sync.
 *
 * @param issues the issues of mapping the records
 * @param isReadAgain the records were read again because of `UnexplainedCells`
 * @throws BasetideError `source_schema_changed` when the table's schema has changed
 * @throws UnexplainedCells unless `isReadAgain`, if the schema is as before and cells do not fit: read the records
 *   again
 */
export async function checkSchema(
  check: SchemaCheck,
  spec: TableSpec,
  records: Iterable<SourceRecord>,
  issues: CellIssue[],
  isReadAgain: boolean,
): Promise<void> {
  const { schemaTracker, cache, isWithoutNew } = check;
  const { rebuild } = schemaTracker.table(spec.tableId);
  const known = isWithoutNew && rebuild && onlyAddsColumns(spec, rebuild) ? rebuild : spec;
  const unknown = unknownFields(known, records, cache.unexplainedFields);
  const { oddColumns } = schemaTracker;
  const odd = fieldsWith(spec, oddIssues(spec, issues)).filter((key) => !oddColumns.has(key));
  if (unknown.size === 0 && odd.length === 0) return;
  try {
    await schemaTracker.refresh();
  } catch (error) {
    // Cells of fields that are not known yet are read with their columns.
    if (odd.length > 0 || !cache.schemaError) throw error;
    return;
  }
  confirmSchema(schemaTracker, spec, isWithoutNew);
  // Fields that remain unexplained do not cause another check; the next regular one may explain them.
  for (const id of unknown) cache.unexplainedFields.add(id);
  if (odd.length > 0 && !isReadAgain)
    throw new UnexplainedCells(`Cells of table ${spec.tableId} do not fit.`);
  for (const key of odd) oddColumns.add(key);
}

/** Runs `write`, and if it throws `UnexplainedCells`, `readAgain`: it must read the same records again and write them. */
export async function withSecondRead<T>(write: () => Promise<T>, readAgain: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof UnexplainedCells)) throw error;
    return await readAgain();
  }
}

/**
 * @param isWithoutNew columns may be missing from `spec`
 * @throws BasetideError `source_schema_changed` unless the table still needs the columns of `spec`
 */
export function confirmSchema(schemaTracker: SchemaTracker, spec: TableSpec, isWithoutNew = false): void {
  const { source, live, rebuild } = schemaTracker.table(spec.tableId);
  const wanted = rebuild ?? live?.spec;
  if (source && wanted && hasSameColumns(spec, wanted)) return;
  if (source && wanted && isWithoutNew && onlyAddsColumns(spec, wanted)) return;
  throw new BasetideError("source_schema_changed", `The shape of table ${spec.tableId} has changed.`);
}

function unknownFields(
  spec: TableSpec,
  records: Iterable<SourceRecord>,
  unexplained: ReadonlySet<string>,
): Set<string> {
  const known = new Set(spec.columns.map((column) => column.fieldId));
  const unknown = new Set<string>();
  for (const { fields } of records) {
    for (const id in fields) if (!known.has(id) && !unexplained.has(id)) unknown.add(id);
  }
  return unknown;
}

/** Returns the issues that a cell of its column's type cannot have: the field may have another type by now. */
export function oddIssues(spec: TableSpec, issues: CellIssue[]): CellIssue[] {
  if (issues.length === 0) return [];
  const columns = new Map(spec.columns.map((column) => [column.name, column]));
  return issues.filter((issue) => {
    const column = columns.get(issue.column);
    return column !== undefined && !OF_ANY_TYPE.has(issue.reason) && isOdd(column, issue);
  });
}

/**
 * Where cells fit only sometimes, those that do not are failed computations and barcodes, which are objects: plain text
 * in place of a number is a cell of another type.
 */
function isOdd({ type }: ColumnSpec, { reason, value }: CellIssue): boolean {
  return traitsOf(type).fits !== "sometimes" || (reason === NOT_A_NUMBER && !value.startsWith("{"));
}

/** Returns one key for each field that has any of these issues. */
function fieldsWith({ tableId, columns }: TableSpec, issues: CellIssue[]): string[] {
  if (issues.length === 0) return [];
  const names = new Set(issues.map((issue) => issue.column));
  return columns.filter(({ name }) => names.has(name)).map(({ fieldId }) => `${tableId} ${fieldId}`);
}
