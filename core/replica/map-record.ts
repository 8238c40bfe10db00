/**
 * Maps records of the source to rows of the replica, with values as in JSON. Live tables get them as JSON, for
 * `json_to_recordset($1::json) as r(id text, created_time timestamp, …)`; tables that are built, as `columnLiterals`.
 *
 * I1. Postgres accepts every row that this module returns, whatever the record held: a cell that does not fit becomes
 *     null and an issue, and never stops a sync.
 * I2. Every row has every column. (The order is not reliable: JavaScript puts a column called `2024` first.)
 */

import { cutText } from "../cut-text";
import type { SourceRecord } from "../source";
import type { AttachmentSigner } from "./attachment-link";
import { type IssueReason, ROW_TOO_WIDE } from "./issue-reasons";
import { type CellReporter, jsonText, storable } from "./map-record-text";
import { timestampText } from "./map-record-time";
import { ownUrlsOf } from "./own-urls";
import { widthLimit } from "./row-width";
import type { CellIssue, ColumnSpec, Row, TableSpec } from "./spec";
import { cellReaderOf, typeMap } from "./type-map";

/** UTF-16 units that an issue shows of a cell's JSON text and of the reason, which can come from the source. */
const ISSUE_VALUE_LENGTH = 1000;
const ISSUE_REASON_LENGTH = 100;

/** `created_time` cannot be null; a record whose time cannot be read gets this one and an issue. */
const UNKNOWN_TIME = "1970-01-01T00:00:00";

export type RecordMapper = (record: SourceRecord, issues: CellIssue[]) => Row;

/**
 * Compiles the mapper of one table's records: compiled once per shape, called per record. It appends to `issues`.
 *
 * @param signer signs with the base's key; required if columns have attachment URLs of ours
 */
export function compileMapper(spec: TableSpec, signer?: AttachmentSigner): RecordMapper {
  const columns = spec.columns.map((column) => compileColumn(spec.tableId, column, signer));
  const limitWidth = widthLimit(spec.columns);
  return (record, issues) => {
    const reporter = new CellIssues(storable(record.id), issues);
    const row: Row = {
      id: reporter.recordId,
      created_time: createdTime(record.createdTime, reporter),
    };
    const { fields } = record;
    for (const { fieldId, name, read, absent, withOwnUrls } of columns) {
      const given = fields[fieldId];
      const cell = withOwnUrls ? withOwnUrls(given, record.id) : given;
      if (cell === undefined || cell === null) row[name] = absent;
      else row[name] = read(cell, reporter.at(name, cell));
    }
    limitWidth?.(row, (index) => {
      const { fieldId, name } = columns[index]!;
      reporter.reportAfterwards(name, fields[fieldId], ROW_TOO_WIDE);
    });
    return row;
  };
}

/**
 * Maps `records` to one row per id. The source can return a record twice while it changes; the last one is the newest.
 */
export function mapRecords(
  mapper: RecordMapper,
  records: Iterable<SourceRecord>,
  issues: CellIssue[],
): Row[] {
  const latest = new Map<string, SourceRecord>();
  for (const record of records) latest.set(storable(record.id), record);
  return Array.from(latest.values(), (record) => mapper(record, issues));
}

function compileColumn(tableId: string, column: ColumnSpec, signer: AttachmentSigner | undefined) {
  const { name, type, columnType } = column;
  return {
    fieldId: column.filesOf ?? column.fieldId,
    name,
    read: cellReaderOf(type, columnType),
    absent: typeMap[type].absent ?? null,
    withOwnUrls: ownUrlsOf(tableId, column, signer),
  };
}

function createdTime(value: string, issues: CellIssues): string {
  const time = timestampText(value);
  if (time !== null) return time;
  issues.at("created_time", value).report("not a date");
  return UNKNOWN_TIME;
}

/** Collects a record's issues, at most one per cell: the first problem found. */
class CellIssues implements CellReporter {
  private column = "";
  private cell: unknown;
  private isReported = false;

  constructor(
    readonly recordId: string,
    private readonly issues: CellIssue[],
    private readonly firstOwn = issues.length,
  ) {}

  /** Moves to the next cell. */
  at(column: string, cell: unknown): this {
    this.column = column;
    this.cell = cell;
    this.isReported = false;
    return this;
  }

  /** Reports a cell after the reporter has moved on to other cells. */
  reportAfterwards(column: string, cell: unknown, reason: IssueReason): void {
    for (let index = this.firstOwn; index < this.issues.length; index++) {
      if (this.issues[index]!.column === column) return;
    }
    this.at(column, cell).report(reason);
  }

  report(reason: IssueReason): void {
    if (this.isReported) return;
    this.isReported = true;
    this.issues.push({
      recordId: this.recordId,
      column: this.column,
      value: cutText(jsonText(this.cell) ?? "(nested too deeply)", ISSUE_VALUE_LENGTH),
      reason: cutText(storable(reason), ISSUE_REASON_LENGTH),
    });
  }
}
