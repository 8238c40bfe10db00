/**
 * Runs SQL as the agent's own role: one statement at a time, each in a read-only transaction that is ended from outside.
 *
 * The server decides what may be read; rows are cut as a whole, and the answer says so.
 */
import { z } from "zod";
import type { Base } from "../../../../core/control/bases";
import { csvHeader, csvLine } from "../../../../core/csv";
import { cutText } from "../../../../core/cut-text";
import { BasetideError } from "../../../../core/errors";
import { adviceOn, type QueryFailure, type QueryOutcome } from "../../../../core/sql-editor";
import { byteLength, freshness, freshnessLine, MOST_ANSWER_BYTES } from "../answer";
import { baseOf, type ToolCall } from "../caller";
import { inQueryTurn } from "../query-turns";
import { readableOf } from "../readable";
import { DENIED, failureOf, runSql } from "../run-sql";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

const MOST_STATEMENTS = 5;
const ROWS = 100;
const MOST_ROWS = 1000;
/** Of a session: a query that sends more is ended. */
const LIMITS = { timeoutMs: 20_000, bytes: 4_000_000 };

export const queryTool = tool({
  name: "query",
  title: "Query by SQL",
  description:
    "Runs read-only Postgres SQL on the live copy of a base, at no cost in Airtable calls. Aggregate in SQL instead of fetching rows. Each text has one statement; they run in order. Links are arrays of record ids: describe_tables has the joins.",
  input: z.object({
    base: baseInput,
    sql: z.union([
      z.string().min(1).max(20_000),
      z.array(z.string().min(1).max(20_000)).min(1).max(MOST_STATEMENTS),
    ]),
    max_rows: z.number().int().min(1).max(MOST_ROWS).optional().describe(`Per statement; default ${ROWS}`),
    explain: z.boolean().optional().describe("Returns the plan instead of the rows"),
  }),
  output: z.object({
    ...freshnessShape,
    results: z.array(
      z.object({
        columns: z.array(z.object({ name: z.string(), type: z.string() })),
        rows: z.array(z.array(z.string().nullable())).describe("Values as Postgres writes them"),
        is_cut: z.boolean().describe("There are more rows"),
        cut_by: z.enum(["max_rows", "bytes"]).optional(),
      }),
    ),
    ms: z.number(),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call, { base: named, sql, max_rows: rows = ROWS, explain = false }) {
    const base = await baseOf(call, named);
    // Before the query: what it reads is at least as fresh.
    const facts = freshness(base);
    const texts = typeof sql === "string" ? [sql] : sql;
    const outcome = await inQueryTurn(call, () => runAll(call, base, texts, rows, explain));
    const results = bounded(outcome.results);
    call.rows = results.reduce((sum, result) => sum + result.rows.length, 0);
    const cut = results.some(({ is_cut }) => is_cut)
      ? " The rows are cut: see is_cut. Aggregate, filter or page by id."
      : "";
    return {
      data: { ...facts, results, ms: outcome.ms },
      head: `${freshnessLine(facts)} ${outcome.ms} ms.${cut}`,
      text: results.map(toCsv).join("\n"),
    };
  },
});

/** @throws BasetideError `query_failed` with what to do, `query_stopped`, `invalid_request` */
async function runAll(
  call: ToolCall,
  base: Base,
  texts: string[],
  rows: number,
  isExplain: boolean,
): Promise<Pick<QueryOutcome, "results" | "ms">> {
  const readable = await readableOf(call, base);
  const all: Pick<QueryOutcome, "results" | "ms"> = { results: [], ms: 0 };
  const limits = { ...LIMITS, rows, signal: call.signal };
  const plan = isExplain ? "estimated" : undefined;
  for (const text of texts) {
    const { failure, results, ms } = await runSql(readable, text, limits, plan);
    if (failure) throw failed(failure, text, readable);
    all.results.push(...results);
    all.ms += ms;
    if (all.results.length > MOST_STATEMENTS)
      throw new BasetideError("invalid_request", `Run at most ${MOST_STATEMENTS} statements at once`);
  }
  return all;
}

function failed(
  failure: QueryFailure,
  sql: string,
  { tables, linkViews }: Pick<Awaited<ReturnType<typeof readableOf>>, "tables" | "linkViews">,
): BasetideError {
  const { sqlState, position } = failure;
  const advice =
    sqlState === DENIED
      ? "Name the columns that describe_tables lists instead of *: you may not read the others. SQL cannot write"
      : adviceOn(
          failure,
          sql,
          tables,
          linkViews.map(({ name }) => name),
        );
  const at = position === undefined ? undefined : `near: ${cutText(sql.slice(position), 40)}`;
  return failureOf(failure, advice, at);
}

/** Keeps whole rows, as many as fit. */
function bounded(results: QueryOutcome["results"]) {
  let left = MOST_ANSWER_BYTES;
  return results.map(({ columns, rows, isCut }) => {
    const kept: (string | null)[][] = [];
    for (const row of rows) {
      left -= byteLength(JSON.stringify(row)) + 1;
      if (left < 0) break;
      kept.push(row);
    }
    const isByBytes = kept.length < rows.length;
    return {
      columns,
      rows: kept,
      is_cut: isCut || isByBytes,
      ...(isByBytes ? { cut_by: "bytes" } : isCut ? { cut_by: "max_rows" } : {}),
    };
  });
}

function toCsv({ columns, rows }: ReturnType<typeof bounded>[number]): string {
  const lines = rows.map((row) => csvLine(row.map((value) => value ?? "")));
  return [csvHeader(columns.map(({ name }) => name)), ...lines].join("").trimEnd();
}
