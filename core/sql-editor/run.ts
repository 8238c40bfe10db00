/**
 * Runs the SQL of the console's editor, as the role that the console reads with.
 *
 * Q1. Each statement runs alone, in the extended protocol, which accepts one statement only, and in a read-only
 *     transaction of its own: what a statement does to its transaction or session does not help the next one.
 * Q2. Time, rows and bytes are limited whatever the SQL does: `withReader` ends the server's process from outside.
 * Q3. Where the only role is one that may write (databases that customers host), only queries run: the server reads
 *     each as the query of a cursor.
 */
import type { PostgresError } from "postgres";
import { BasetideError, isBasetideError } from "../errors";
import { type ReaderLimits, type ReaderSession, type ReaderTarget, withReader } from "../replica";
import { typeName } from "./column-types";
import { firstWord, type SqlStatement, splitStatements } from "./split";

/** Longest text, in UTF-16 units. */
export const MOST_TEXT = 50_000;
export const MOST_STATEMENTS = 20;

interface QueryLimits extends ReaderLimits {
  /** Per statement. */
  rows: number;
}

interface ResultColumn {
  name: string;
  /** Empty for a type that is not Postgres' own. */
  type: string;
}

type ResultRow = (string | null)[];

export interface StatementResult {
  columns: ResultColumn[];
  rows: ResultRow[];
  /** There are more rows than the limit. */
  isCut: boolean;
}

/** What is wrong with a statement, for the person who wrote it. */
export interface QueryFailure {
  message: string;
  detail?: string | undefined;
  hint?: string | undefined;
  sqlState?: string | undefined;
  /** Offset of the error in the whole text, in UTF-16 units. */
  position?: number | undefined;
  /** Offset of the statement. */
  start?: number | undefined;
}

export interface QueryOutcome {
  results: StatementResult[];
  /** Why the statement after the last result failed. */
  failure?: QueryFailure | undefined;
  ms: number;
}

/** Shows how Postgres would run a statement, or how it ran it. */
export type PlanKind = "estimated" | "actual";

const PLAN_PREFIXES: Record<PlanKind, string> = {
  estimated: "explain (format json) ",
  actual: "explain (analyze, format json) ",
};

/** Receives rows as they arrive; the next ones are read when the promise resolves. */
type OnRows = (rows: ResultRow[], columns: ResultColumn[]) => Promise<void> | void;

/**
 * Runs the statements of `sql` in order, up to the first that fails.
 *
 * @param plan returns the plan of each statement as JSON, instead of its rows
 * @throws BasetideError `invalid_request` if there is no statement, or too much text; `replica_unavailable`
 */
export async function runQuery(
  target: ReaderTarget,
  sql: string,
  limits: QueryLimits,
  plan?: PlanKind,
): Promise<QueryOutcome> {
  const statements = checkedStatements(sql);
  const results: StatementResult[] = [];
  const began = performance.now();
  const outcome = (failure?: QueryFailure) => ({
    results,
    failure,
    ms: Math.round(performance.now() - began),
  });
  let current = toSend(statements[0]!, target, plan);
  try {
    await withReader(target, limits, async (session) => {
      for (const [at, statement] of statements.entries()) {
        if (at > 0) await session.begin();
        current = toSend(statement, target, plan);
        const result: StatementResult = { columns: [], rows: [], isCut: false };
        result.isCut = await runStatement(session, current, limits.rows, (rows, columns) => {
          result.columns = columns;
          result.rows.push(...rows);
        });
        results.push(result);
      }
    });
    return outcome();
  } catch (error) {
    if (isBasetideError(error, "query_failed")) return outcome(failureOf(error, current, sql));
    if (isBasetideError(error, "query_stopped")) return outcome({ message: error.message });
    throw error;
  }
}

/**
 * Runs one statement of `sql`, and passes its rows on as they arrive.
 *
 * @param at which one; absent: there must be only one
 * @returns whether there are more rows than the limit
 * @throws BasetideError `query_failed`, `query_stopped`, `invalid_request`, `replica_unavailable`
 */
export async function streamQuery(
  target: ReaderTarget,
  sql: string,
  limits: QueryLimits,
  onRows: OnRows,
  at?: number,
): Promise<boolean> {
  const statements = checkedStatements(sql);
  const statement = statements[at ?? 0];
  if (!statement || (at === undefined && statements.length > 1)) {
    throw new BasetideError(
      "invalid_request",
      "A download has the result of one statement. Select one of them",
    );
  }
  return withReader(target, limits, (session) =>
    runStatement(session, toSend(statement, target), limits.rows, onRows),
  );
}

function checkedStatements(sql: string): SqlStatement[] {
  if (sql.length > MOST_TEXT)
    throw new BasetideError("invalid_request", `The SQL has more than ${MOST_TEXT} characters`);
  if (sql.includes("\0")) throw new BasetideError("invalid_request", "The SQL contains the NUL character");
  const statements = splitStatements(sql);
  if (statements.length === 0) throw new BasetideError("invalid_request", "Enter a query first");
  if (statements.length > MOST_STATEMENTS) {
    throw new BasetideError("invalid_request", `There are more than ${MOST_STATEMENTS} statements`);
  }
  return statements;
}

/** A statement as it is sent. */
interface Sent {
  text: string;
  /** Length of what precedes the customer's text. */
  prefix: number;
  statement: SqlStatement;
  /** Its rows are fetched from `CURSOR`. */
  hasCursor: boolean;
}

const CURSOR = "basetide_query";
/** Rows per message to `onRows`. */
const BATCH = 500;

function toSend(statement: SqlStatement, { mayWrite }: ReaderTarget, plan?: PlanKind): Sent {
  const first = firstWord(statement.text);
  const isPlan = first === "explain";
  const hasCursor = mayWrite && !isPlan && !plan && first !== "show";
  let prefix = "";
  if (hasCursor) prefix = `declare ${CURSOR} no scroll cursor for `;
  else if (plan && !isPlan) prefix = PLAN_PREFIXES[plan];
  return { text: `${prefix}${statement.text}`, prefix: prefix.length, statement, hasCursor };
}

/** @returns whether there are more rows than `most` */
async function runStatement(
  { sql }: ReaderSession,
  { text, statement, hasCursor }: Sent,
  most: number,
  onRows: OnRows,
): Promise<boolean> {
  if (firstWord(statement.text) === "copy") {
    throw new BasetideError(
      "query_failed",
      "COPY is not available here. Run a query, and download its result",
    );
  }
  let columns: ResultColumn[] = [];
  let count = 0;
  let isCut = false;
  const take = async (result: RawResult): Promise<void> => {
    if (result.columns) columns = result.columns.map(({ name, type }) => ({ name, type: typeName(type) }));
    const rows = result.slice(0, most - count);
    isCut ||= result.length > rows.length;
    count += rows.length;
    await onRows(rows.map(texts), columns);
  };
  if (!hasCursor) {
    await portal(sql, text, Math.min(BATCH, most + 1), take, () => isCut);
    return isCut;
  }
  await sql.unsafe(text, [], { simple: false } as object);
  for (let size = BATCH; size === BATCH && !isCut; ) {
    size = 0;
    const fetched = async (result: RawResult) => {
      size += result.length;
      await take(result);
    };
    await portal(sql, `fetch ${BATCH} from ${CURSOR}`, BATCH, fetched, () => isCut);
  }
  return isCut;
}

/** A result of the driver: values as the server sent them. */
type RawResult = (Buffer | null)[][] & { columns?: { name: string; type: number }[] };

/** Runs one statement in the extended protocol and reads its rows in parts of `size`, until the end or `isEnough`. */
async function portal(
  sql: ReaderSession["sql"],
  text: string,
  size: number,
  take: (result: RawResult) => Promise<void>,
  isEnough: () => boolean,
): Promise<void> {
  const taken = new Set<unknown>();
  let taking = Promise.resolve();
  const last = await sql
    .unsafe(text, [], { simple: false } as object)
    .raw()
    .cursor(size, async (rows) => {
      taken.add(rows);
      taking = take(rows as unknown as RawResult);
      await taking.catch(() => {});
      return isEnough() ? sql.CLOSE : undefined;
    });
  // The driver does not wait for the last part.
  await taking;
  // The driver passes on no part that is empty, or whose end has no count of rows (`show`, `explain`).
  if (!taken.has(last) && !(taken.size > 0 && last.length === 0)) await take(last as unknown as RawResult);
}

function texts(row: (Buffer | null)[]): ResultRow {
  return row.map((value) => (value === null ? null : value.toString("utf8")));
}

function failureOf(error: BasetideError, { prefix, statement }: Sent, sql: string): QueryFailure {
  const { detail, hint } = (error.cause ?? {}) as Partial<PostgresError>;
  const { sqlState, position } = error.details;
  const before = typeof position === "number" ? position - 1 - prefix : -1;
  // The server counts characters, and we count UTF-16 units.
  const offset = [...statement.text].slice(0, Math.max(0, before)).join("").length;
  return {
    message: error.message,
    detail,
    hint,
    sqlState: sqlState === undefined ? undefined : String(sqlState),
    position: before < 0 ? undefined : Math.min(statement.start + offset, sql.length),
    start: statement.start,
  };
}
