/**
 * Streams all rows of a selection as CSV or JSON, in the order of the grid.
 *
 * Rows are read in batches, each by a statement that begins after the last row, when the client has taken the previous
 * batch: a slow client holds no connection, snapshot or lock, and no more than one batch in memory.
 */
import type { Base } from "../control/bases";
import { csvCell, csvHeader, csvLine } from "../csv";
import { BasetideError } from "../errors";
import { browseRows, loadTable } from "./browse";
import type { BrowsedColumn, BrowsedTable } from "./columns";
import { type ReadContext, reading } from "./reading";
import type { Cursor } from "./statements";
import { browsableTables } from "./tables";
import { type CheckedState, checkState, type ViewState } from "./view-state";

type DownloadFormat = "csv" | "json";

/** The next batch has as many rows as fit in about this many bytes, by the previous one. */
const BATCH_BYTES = 1_000_000;
const FIRST_ROWS = 500;
const MOST_ROWS = 10_000;
/** A download that is not complete after this time fails, ms; the longest that a browser waits for bytes is shorter. */
export const LONGEST_MS = 10 * 60_000;

export interface Download {
  table: BrowsedTable;
  body: ReadableStream<Uint8Array>;
}

/**
 * Starts the download. The first batch is read before this resolves, so that its errors can still be answered; a later
 * error breaks the stream, and the client sees an incomplete transfer.
 *
 * @throws BasetideError `invalid_request` if a filter is not possible; see `browsePage`
 */
export async function startDownload(
  ctx: ReadContext,
  base: Base,
  tableName: string,
  asked: ViewState,
  { format, signal }: { format: DownloadFormat; signal: AbortSignal },
): Promise<Download> {
  const table = await reading(ctx, base, (sql) => loadTable(ctx, sql, base, tableName));
  const known = browsableTables(base).find(({ name }) => name === tableName)?.records;
  const state = checkState({ ...asked, cursor: undefined }, table, known);
  const problem = state.filters.find((filter) => filter.problem)?.problem;
  if (problem) throw new BasetideError("invalid_request", problem);
  const columns = fileColumns(table, state);
  const until = performance.now() + LONGEST_MS;
  let cursor: Cursor | undefined;
  let limit = FIRST_ROWS;
  let isFirst = true;
  let isDone = false;

  async function next(): Promise<string> {
    const selection = { filters: state.usable, sort: state.sort, search: state.search };
    const options = { cursor, limit, form: "whole" as const };
    const rows = await reading(ctx, base, (sql) => browseRows(sql, table, columns, selection, options));
    isDone = rows.length < limit;
    const last = rows.at(-1);
    if (last) cursor = { id: last[0] as string, isBefore: false, value: last[1] as string | null };
    const cells = rows.map((row) => row.slice(2));
    const text = format === "csv" ? csvRows(columns, cells) : jsonRows(columns, cells, isFirst);
    const head = isFirst ? (format === "csv" ? csvHeader(columns.map(({ name }) => name)) : "[\n") : "";
    const foot = isDone && format === "json" ? "\n]\n" : "";
    isFirst = false;
    limit = Math.max(1, Math.min(MOST_ROWS, Math.floor((limit * BATCH_BYTES) / Math.max(1, text.length))));
    return head + text + foot;
  }

  const encoder = new TextEncoder();
  const first = await next();
  let waiting: string | undefined = first;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (signal.aborted) throw signal.reason;
          if (performance.now() > until) throw new Error("The download took too long");
          const text = waiting ?? (isDone ? undefined : await next());
          waiting = undefined;
          if (text !== undefined) controller.enqueue(encoder.encode(text));
          if (isDone) controller.close();
        } catch (error) {
          ctx.log.info({ baseId: base.id, table: table.tableId, error }, "a download of rows ended early");
          controller.error(error);
        }
      },
    },
    { highWaterMark: 0 },
  );
  return { table, body };
}

/** The record's id, then the chosen columns. Without a choice, all of them: the grid has the first ones only for its width. */
function fileColumns({ columns, primary }: BrowsedTable, state: CheckedState): BrowsedColumn[] {
  const id = columns.find(({ name }) => name === "id")!;
  const all = state.columns.length > 0 ? state.shown : [primary, ...columns];
  return [...new Set([id, ...all])];
}

function csvRows(columns: BrowsedColumn[], rows: unknown[][]): string {
  return rows.map((row) => csvLine(row.map((cell, index) => csvCell(cell, columns[index]!.kind)))).join("");
}

function jsonRows(columns: BrowsedColumn[], rows: unknown[][], isFirst: boolean): string {
  const objects = rows.map((row) => {
    // Numbers stay exact: Postgres' digits are JSON's.
    const members = row.map(
      (cell, index) => `${JSON.stringify(columns[index]!.name)}:${jsonCell(cell, columns[index]!)}`,
    );
    return `{${members.join(",")}}`;
  });
  if (objects.length === 0) return "";
  return `${isFirst ? "" : ",\n"}${objects.join(",\n")}`;
}

function jsonCell(cell: unknown, { kind }: BrowsedColumn): string {
  if (cell === null || cell === undefined) return "null";
  return kind === "number" && /^-?\d/.test(String(cell)) ? String(cell) : JSON.stringify(cell);
}
