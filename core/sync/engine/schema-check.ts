/**
 * Detects records that do not match the schema that they are mapped with: the source's schema may change at any
 * moment, and only the records in its lists show that.
 *
 * I6. Such records are not written until a schema check has explained them.
 */
import { BasetideError } from "../../errors";
import {
  type CellIssue,
  hasSameColumns,
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
 * Runs a schema check if `records` contain fields that `spec` does not have, or cells that its types cannot hold (once
 * per sync, because a cell may stay odd).
 *
 * @param issues the issues of mapping the records
 * @throws BasetideError `source_schema_changed` when the table's schema has changed
 */
export async function checkSchema(
  check: SchemaCheck,
  spec: TableSpec,
  records: Iterable<SourceRecord>,
  issues: CellIssue[],
): Promise<void> {
  const { schemaTracker, cache, isWithoutNew } = check;
  const { rebuild } = schemaTracker.table(spec.tableId);
  const known = isWithoutNew && rebuild && onlyAddsColumns(spec, rebuild) ? rebuild : spec;
  const unknown = unknownFields(known, records, cache.unexplainedFields);
  if (unknown.size === 0 && !(areOdd(spec, issues) && schemaTracker.isFirstSuspicion(spec.tableId))) return;
  await schemaTracker.refresh();
  confirmSchema(schemaTracker, spec, isWithoutNew);
  // Fields that remain unexplained do not cause another check; the next regular one may explain them.
  for (const id of unknown) cache.unexplainedFields.add(id);
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

function areOdd(spec: TableSpec, issues: CellIssue[]): boolean {
  return oddIssues(spec, issues).length > 0;
}

/** Returns the issues that a cell of its column's type cannot have: the field may have another type by now. */
export function oddIssues(spec: TableSpec, issues: CellIssue[]): CellIssue[] {
  if (issues.length === 0) return [];
  const ruly = new Set(
    spec.columns.filter(({ type }) => traitsOf(type).fits !== "sometimes").map((column) => column.name),
  );
  return issues.filter(({ column, reason }) => ruly.has(column) && !OF_ANY_TYPE.has(reason));
}
