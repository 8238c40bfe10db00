/**
 * The SQL editor of a base. A query runs with the console's read-only role, and ends with its request: the editor
 * cancels it by aborting the request, and a page that is closed does the same.
 */
import { Elysia } from "elysia";
import type { CurrentUser } from "../../../../core/control/accounts";
import { type Base, readerTarget } from "../../../../core/control/bases";
import { csvCell, csvHeader, csvLine } from "../../../../core/csv";
import { cutText } from "../../../../core/cut-text";
import { BasetideError, httpStatus, isBasetideError } from "../../../../core/errors";
import { readableName, sampleQueries } from "../../../../core/exports";
import { ATTACHMENT_DETAILS } from "../../../../core/replica";
import {
  adviceOn,
  clearHistory,
  deleteSavedQuery,
  listHistory,
  listSavedQueries,
  MOST_TEXT,
  NUMERIC_TYPES,
  type PlanKind,
  pastQuery,
  type QueryFailure,
  recordQuery,
  runQuery,
  saveQuery,
  streamQuery,
  withRunSlot,
} from "../../../../core/sql-editor";
import { type BoundSql, bindParameters, parametersOf } from "../../../../core/sql-parameters";
import { ErrorNote } from "../../../../views/components";
import { isHtmx, securityHeaders } from "../../../../views/render";
import { EditorPage, type EditorProps } from "../../../../views/sql/editor-page";
import { QueryHistory } from "../../../../views/sql/history";
import { QueryResults } from "../../../../views/sql/results";
import { editorScripts } from "../../assets";
import type { Names } from "../../assets/sql-completion";
import { type BaseCall, onOneBase } from "../../base-page";
import { formResultOf } from "../../form-error";
import { type ConsoleContext, finish, formSecret, formText } from "../../page-kit";
import { requireReadable } from "../../readable";
import { cachedShape } from "../../shape-cache";

const RUN = { timeoutMs: 30_000, bytes: 4_000_000, rows: 500 };
const CSV = { timeoutMs: 50_000, bytes: 64_000_000, rows: 100_000 };
/** What a browser keeps, to page through a result. */
const ALL_ROWS = { ...CSV, bytes: 32_000_000 };
const PLANS: Record<string, PlanKind> = { plan: "estimated", analyze: "actual" };
const SHOWN_LIMITS = { seconds: RUN.timeoutMs / 1000, rows: RUN.rows, csvRows: CSV.rows };
const OWN_TABLES = ["_sync_meta", "_sync_issues"];
/** What a page may echo of a text that was too long to run. */
const MOST_ECHO = 2 * MOST_TEXT;

export function sqlPages(ctx: ConsoleContext) {
  const { db } = ctx;

  async function samplesOf(base: Base) {
    // The editor is of use while the tables cannot be read, too.
    const shape = await cachedShape(ctx, base).catch(() => undefined);
    const counts = new Map(base.tables.map(({ name, records }) => [name, records]));
    return shape ? sampleQueries(base.database.schema, shape.tables, counts) : [];
  }

  async function editorPage(
    { base, basePage, currentUser }: BaseCall,
    facts: Partial<EditorProps> & { status?: number | undefined },
  ): Promise<Response> {
    const [saved, samples, history, scripts] = await Promise.all([
      listSavedQueries(db, base),
      samplesOf(base),
      listHistory(db, base, currentUser),
      editorScripts(),
    ]);
    const { status, sql = samples[0]?.sql ?? "", ...rest } = facts;
    return basePage(
      { place: "sql", title: "SQL", status },
      <EditorPage
        {...{ base, userId: currentUser.userId, samples, saved, history, limits: SHOWN_LIMITS }}
        {...scripts}
        {...rest}
        sql={cutText(sql, MOST_ECHO)}
      />,
    );
  }

  /** The query that an address names. */
  async function named(
    base: Base,
    currentUser: CurrentUser,
    query: Record<string, unknown>,
  ): Promise<Pick<EditorProps, "sql" | "current"> | undefined> {
    const [savedId, pastId] = [textOf(query.saved), textOf(query.past)];
    if (savedId !== undefined) {
      const current = (await listSavedQueries(db, base)).find(({ id }) => id === savedId);
      return current && { sql: current.sql, current };
    }
    const sql =
      pastId === undefined
        ? query.sample && (await samplesOf(base))[Number(query.sample) - 1]?.sql
        : await pastQuery(db, base, currentUser, pastId);
    return typeof sql === "string" ? { sql } : undefined;
  }

  async function advise(base: Base, failure: QueryFailure, sql: string): Promise<string | undefined> {
    // Without the tables, the error itself still shows.
    const shape = await cachedShape(ctx, base).catch(() => undefined);
    const views = shape ? [...shape.linkViews, ...shape.attachmentViews] : [];
    return adviceOn(failure, sql, shape?.tables ?? [], [...views.map(({ name }) => name), ...OWN_TABLES]);
  }

  return (
    new Elysia({ name: "sql-pages", detail: { hide: true } })
      .use(onOneBase(ctx))
      .get("/bases/:id/sql", async (call) => {
        const { request, currentUser, base, query } = call;
        const asked = await named(base, currentUser, query);
        if (request.headers.get("accept") !== "application/json") return editorPage(call, asked ?? {});
        const { sql = null, current } = { current: undefined, ...asked };
        return Response.json({ sql, id: current?.id, name: current?.name }, { headers: dataHeaders });
      })
      .get("/bases/:id/sql/history", async ({ currentUser, page, base }) => {
        const history = await listHistory(db, base, currentUser);
        return page({ title: "SQL" }, <QueryHistory history={history} path={`/bases/${base.id}/sql`} />);
      })
      .post("/bases/:id/sql/history/clear", async ({ request, currentUser, base }) => {
        await clearHistory(db, base, currentUser);
        return finish(request, `/bases/${base.id}/sql`, "History cleared.");
      })
      .get("/bases/:id/sql/names", async ({ base }) => {
        const { tables, linkViews, attachmentViews } = await cachedShape(ctx, base);
        const details = ATTACHMENT_DETAILS.map(({ name }) => name);
        const viewed = (view: { name: string; columns: readonly string[] }, more: string[] = []) => {
          const [from, to] = view.columns as [string, string];
          return { name: view.name, columns: [from, "position", to, ...more].map((name) => ({ name })) };
        };
        const relations = [
          ...tables.map(({ name, columns }) => ({
            name,
            columns: [
              ...columns.map(({ name, columnType }) => ({ name, type: columnType as string })),
              { name: "id", type: "text" },
              { name: "created_time", type: "timestamp" },
            ],
          })),
          ...linkViews.map((view) => viewed(view)),
          ...attachmentViews.map((view) => viewed(view, details)),
          ...OWN_TABLES.map((name) => ({ name, columns: [] })),
        ].map(({ name, columns }) => ({ ...writtenName({ name }), columns: columns.map(writtenName) }));
        return Response.json({ schema: base.database.schema, relations } satisfies Names, {
          headers: dataHeaders,
        });
      })
      .post("/bases/:id/sql", async (call) => {
        const { request, currentUser, page, base, account, body } = call;
        const sql = formSecret(body, "sql");
        const plan = PLANS[formText(body, "as")];
        let view: preact.VNode;
        let status: number | undefined;
        try {
          await requireReadable(ctx, currentUser, base);
          const bound = boundSql(sql, body);
          const outcome = await withRunSlot(account.id, async () =>
            runQuery(await readerTarget(ctx, base), bound.sql, { ...RUN, signal: request.signal }, plan),
          );
          const { results, ms } = outcome;
          const failure = outcome.failure && failureIn(bound, outcome.failure);
          const rows = failure ? null : (results.at(-1)?.rows.length ?? 0);
          if (!plan) await recordQuery(db, base, currentUser, { sql, ms, rows });
          const advice = failure && (await advise(base, failure, sql));
          view = <QueryResults outcome={{ ...outcome, failure }} {...{ sql, advice }} />;
        } catch (error) {
          const message = messageOf(error);
          status = isHtmx(request) ? undefined : message.status;
          view = <ErrorNote>{message.text}</ErrorNote>;
        }
        if (isHtmx(request)) return page({ title: "SQL" }, view);
        return editorPage(call, { sql, values: valuesIn(sql, body), children: view, status });
      })
      .post("/bases/:id/sql/csv", async (call) => {
        const { request, currentUser, base, account, body } = call;
        const sql = formSecret(body, "sql");
        try {
          await requireReadable(ctx, currentUser, base);
          const bound = boundSql(sql, body);
          return await streamed(request, account.id, CSV_FORM, (onRows, signal) =>
            readerTarget(ctx, base).then((target) =>
              streamQuery(target, bound.sql, { ...CSV, signal }, onRows),
            ),
          );
        } catch (error) {
          const { text, status } = messageOf(error);
          const sqlState = isBasetideError(error, "query_failed")
            ? String(error.details.sqlState)
            : undefined;
          const advice = sqlState && (await advise(base, { message: text, sqlState }, sql));
          const problem = advice ? `${text}. ${advice}` : text;
          return editorPage(call, { sql, values: valuesIn(sql, body), problem, status });
        }
      })
      // All rows of one statement, for the browser to page through: those of one run, which other changes do not move.
      .post("/bases/:id/sql/rows", async ({ request, currentUser, base, account, body }) => {
        try {
          await requireReadable(ctx, currentUser, base);
          const { sql } = boundSql(formSecret(body, "sql"), body);
          const at = Number(formText(body, "statement"));
          return await streamed(request, account.id, LINES_FORM, (onRows, signal) =>
            readerTarget(ctx, base).then((target) =>
              streamQuery(target, sql, { ...ALL_ROWS, signal }, onRows, at),
            ),
          );
        } catch (error) {
          const { text, status } = messageOf(error);
          return Response.json({ error: text }, { status, headers: dataHeaders });
        }
      })
      .post("/bases/:id/sql/saved", async (call) => {
        const { request, base, body } = call;
        const query = { name: formText(body, "name"), sql: formSecret(body, "sql") };
        const { failed, value } = await formResultOf(() => saveQuery(ctx, base, query));
        if (!failed) return finish(request, `/bases/${base.id}/sql?saved=${value.id}`, "Query saved.");
        const { message: problem, status } = failed;
        const { sql } = query;
        return editorPage(call, { sql, values: valuesIn(sql, body), problem, status });
      })
      .post("/bases/:id/sql/saved/:query/delete", async ({ request, base, params }) => {
        await deleteSavedQuery(db, base, params.query);
        return finish(request, `/bases/${base.id}/sql`, "Query deleted.");
      })
  );
}

const dataHeaders = { ...securityHeaders, "cache-control": "no-store" };

/** A name, and how SQL writes it if it needs quotes. */
function writtenName<T extends { name: string }>(named: T): T & { written?: string } {
  const written = readableName(named.name);
  return written === named.name ? named : { ...named, written };
}

/** The values of the query's parameters that a form has: fields with their names. */
function valuesIn(sql: string, body: unknown): Map<string, string> {
  const fields = (body ?? {}) as Record<string, unknown>;
  const given = parametersOf(sql).filter((name) => typeof fields[`:${name}`] === "string");
  return new Map(given.map((name) => [name, fields[`:${name}`] as string]));
}

/** @throws BasetideError `invalid_request` for a parameter that the form does not ask for: then the page does */
function boundSql(sql: string, body: unknown): BoundSql {
  const values = valuesIn(sql, body);
  const missing = parametersOf(sql).filter((name) => !values.has(name));
  if (missing.length === 0) return bindParameters(sql, values);
  const list = missing.map((name) => `:${name}`).join(", ");
  throw new BasetideError("invalid_request", `Enter values for ${list}, and run the query again`);
}

function failureIn({ original }: BoundSql, failure: QueryFailure): QueryFailure {
  const { position, start } = failure;
  return {
    ...failure,
    position: position === undefined ? undefined : original(position),
    start: start === undefined ? undefined : original(start),
  };
}

/** What a person can do something about. @throws any other error */
function messageOf(error: unknown): { text: string; status: number } {
  const codes = [
    "query_failed",
    "query_stopped",
    "replica_unavailable",
    "invalid_request",
    "conflict",
    "forbidden",
  ];
  if (!isBasetideError(error) || !codes.includes(error.code)) throw error;
  return { text: error.message, status: httpStatus[error.code] };
}

type Columns = Parameters<Parameters<typeof streamQuery>[3]>[1];
type Stream = (
  onRows: (rows: (string | null)[][], columns: Columns) => Promise<void>,
  signal: AbortSignal,
) => Promise<boolean>;

/** How rows are written into an answer. */
interface RowsForm {
  head(columns: Columns): string;
  rows(rows: (string | null)[][], columns: Columns): string;
  end(isCut: boolean): string;
  /** An error after the first row; absent: it ends the connection. */
  failed?(error: unknown): string;
  headers: Record<string, string>;
}

const CSV_FORM: RowsForm = {
  head: (columns) => csvHeader(columns.map(({ name }) => name)),
  rows(rows, columns) {
    const kinds = columns.map(({ type }) => (NUMERIC_TYPES.has(type) ? "number" : "text"));
    return rows.map((row) => csvLine(row.map((value, at) => csvCell(value, kinds[at]!)))).join("");
  },
  end: () => "",
  headers: {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": 'attachment; filename="query.csv"',
  },
};

/** Each line is JSON: an array of rows, and at the end whether there are more, or an error. */
const LINES_FORM: RowsForm = {
  head: () => "",
  rows: (rows) => `${JSON.stringify(rows)}\n`,
  end: (isCut) => `${JSON.stringify({ isCut })}\n`,
  failed: (error) => `${JSON.stringify({ error: isBasetideError(error) ? error.message : "" })}\n`,
  headers: { "content-type": "application/x-ndjson" },
};

/**
 * Answers with the rows as they arrive; reads no more than the client takes, and stops when it leaves.
 *
 * @throws the error of `stream`, if it comes before the first row
 */
async function streamed(
  { signal }: Request,
  accountId: string,
  form: RowsForm,
  stream: Stream,
): Promise<Response> {
  const abort = new AbortController();
  const started = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  let output!: ReadableStreamDefaultController<Uint8Array>;
  let wake = () => {};
  const cancel = () => {
    abort.abort();
    wake();
  };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      output = controller;
    },
    pull: () => wake(),
    cancel,
  });
  // Before the first row, the answer has no body that could be cancelled.
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  let isFirst = true;
  const send = (text: string) => {
    if (!abort.signal.aborted) output.enqueue(encoder.encode(text));
  };
  const running = withRunSlot(accountId, () =>
    stream(async (rows, columns) => {
      send((isFirst ? form.head(columns) : "") + form.rows(rows, columns));
      isFirst = false;
      started.resolve();
      while ((output.desiredSize ?? 0) <= 0 && !abort.signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }, abort.signal),
  );
  running.then(
    (isCut) => {
      started.resolve();
      send(form.end(isCut));
      if (!abort.signal.aborted) output.close();
    },
    (error: unknown) => {
      started.reject(error);
      if (abort.signal.aborted) return;
      if (isFirst || !form.failed) return output.error(error);
      send(form.failed(error));
      output.close();
    },
  );
  await started.promise;
  return new Response(body, { headers: { ...dataHeaders, ...form.headers } });
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
