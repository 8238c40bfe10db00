/**
 * Notices records of another shape than the one they are mapped for: the source's schema may change at any moment,
 * and its lists tell of it only by what is in them.
 *
 * I6. Such records are not written before a schema check has said what they mean.
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

/** Reasons that say nothing of the field's type. */
const OF_ANY_TYPE: ReadonlySet<string> = new Set([UNSTORABLE_TEXT, ROW_TOO_WIDE]);

export interface SchemaCheck {
  schemaTracker: SchemaTracker;
  cache: BaseCache;
  /** What is written may lack columns that its table is still to get: all others are brought up to date meanwhile. */
  isWithoutNew?: boolean | undefined;
}

/**
 * Looks at the schema if `records` hold fields that `spec` does not know, or cells that its types cannot have (once
 * in a look, as a cell may be odd for good).
 *
 * @param issues what mapping the records made
 * @throws BasetideError `source_schema_changed` when the table is of another shape by now
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
  // Those that nobody can explain are waited for until the next look that is due anyway.
  for (const id of unknown) cache.unexplainedFields.add(id);
}

/**
 * @param isWithoutNew columns may be missing from `spec`
 * @throws BasetideError `source_schema_changed` unless the table is still wanted with the columns of `spec`
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

/** Those of the issues that a cell of its column's type cannot have: the field may have another type by now. */
export function oddIssues(spec: TableSpec, issues: CellIssue[]): CellIssue[] {
  if (issues.length === 0) return [];
  const ruly = new Set(
    spec.columns.filter(({ type }) => traitsOf(type).fits !== "sometimes").map((column) => column.name),
  );
  return issues.filter(({ column, reason }) => ruly.has(column) && !OF_ANY_TYPE.has(reason));
}
