/**
 * The SQL editor of a base. A query runs with the console's read-only role, and ends with its request: the editor
 * cancels it by aborting the request, and a page that is closed does the same.
 */
import { Elysia } from "elysia";
import type { Account } from "../../../../core/control/accounts";
import { type Base, getBase, readerTarget } from "../../../../core/control/bases";
import { csvCell, csvHeader, csvLine } from "../../../../core/data-browser";
import { httpStatus, isBasetideError } from "../../../../core/errors";
import { readableName, sampleQueries } from "../../../../core/exports";
import { ATTACHMENT_DETAILS } from "../../../../core/replica";
import {
  adviceOn,
  deleteSavedQuery,
  listSavedQueries,
  MOST_TEXT,
  NUMERIC_TYPES,
  type QueryFailure,
  runQuery,
  saveQuery,
  streamQuery,
  withRunSlot,
} from "../../../../core/sql-editor";
import { BaseFrame } from "../../../../views/base/frame";
import { ErrorNote } from "../../../../views/components";
import { isHtmx, securityHeaders } from "../../../../views/render";
import { EditorPage, type EditorProps } from "../../../../views/sql/editor-page";
import { QueryResults } from "../../../../views/sql/results";
import { editorScript } from "../../assets";
import type { Names } from "../../assets/sql-completion";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, finish, formSecret, formText, signedIn } from "../../page-kit";
import { requireReadable } from "../../readable";
import { cachedShape } from "../../shape-cache";

const RUN = { timeoutMs: 30_000, bytes: 4_000_000, rows: 500 };
const CSV = { timeoutMs: 50_000, bytes: 64_000_000, rows: 100_000 };
const SHOWN_LIMITS = { seconds: RUN.timeoutMs / 1000, rows: RUN.rows, csvRows: CSV.rows };
const OWN_TABLES = ["_sync_meta", "_sync_issues"];
/** What a page may echo of a text that was too long to run. */
const MOST_ECHO = 2 * MOST_TEXT;

export function sqlPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const find = (id: string, account: Account) => getBase(db, id, account.id);

  /** The page, or for the editor's script what changed of it. */
  async function editorPage(
    request: Request,
    currentUser: Parameters<typeof answer>[1]["currentUser"],
    base: Base,
    facts: Partial<EditorProps> & { sample?: number; savedId?: string | undefined; status?: number },
  ): Promise<Response> {
    const [saved, shape, script] = await Promise.all([
      listSavedQueries(db, base),
      // The editor is of use while the tables cannot be read, too.
      cachedShape(ctx, base).catch(() => undefined),
      editorScript(),
    ]);
    const counts = new Map(base.tables.map(({ name, records }) => [name, records]));
    const samples = shape ? sampleQueries(base.database.schema, shape.tables, counts) : [];
    const current = saved.find(({ id }) => id === facts.savedId);
    const sql = facts.sql ?? current?.sql ?? samples[(facts.sample ?? 1) - 1]?.sql ?? "";
    const { sample: _, savedId: __, status, ...rest } = facts;
    return answer(
      request,
      { title: `SQL · ${base.name}`, currentUser, active: "bases", base, status },
      <BaseFrame base={base} place="sql">
        <EditorPage
          {...{ base, samples, saved, current, script, limits: SHOWN_LIMITS }}
          {...rest}
          sql={sql.slice(0, MOST_ECHO)}
        />
      </BaseFrame>,
    );
  }

  async function advise(base: Base, failure: QueryFailure, sql: string): Promise<string | undefined> {
    // Without the tables, the error itself still shows.
    const shape = await cachedShape(ctx, base).catch(() => undefined);
    const views = shape ? [...shape.linkViews, ...shape.attachmentViews] : [];
    return adviceOn(failure, sql, shape?.tables ?? [], [...views.map(({ name }) => name), ...OWN_TABLES]);
  }

  return new Elysia({ name: "sql-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/sql", async ({ request, currentUser, account, params, query }) => {
      const base = await find(params.id, account);
      const sample = Number(query.sample) || 1;
      return editorPage(request, currentUser, base, { sample, savedId: textOf(query.saved) });
    })
    .get("/bases/:id/sql/names", async ({ account, params }) => {
      const base = await find(params.id, account);
      const { tables, linkViews, attachmentViews } = await cachedShape(ctx, base);
      const details = ATTACHMENT_DETAILS.map(({ name }) => name);
      const views = [
        ...linkViews.map(({ name, columns: [from, to] }) => ({ name, columns: [from, "position", to] })),
        ...attachmentViews.map(({ name, columns: [from, to] }) => ({
          name,
          columns: [from, "position", to, ...details],
        })),
      ];
      const relations = [
        ...tables.map(({ name, columns }) => ({
          name,
          columns: [...columns.map((column) => column.name), "id", "created_time"],
        })),
        ...views,
        ...OWN_TABLES.map((name) => ({ name, columns: [] as string[] })),
      ].map(({ name, columns }) => ({ ...writtenName(name), columns: columns.map(writtenName) }));
      return Response.json({ schema: base.database.schema, relations } satisfies Names, {
        headers: { ...securityHeaders, "cache-control": "no-store" },
      });
    })
    .post("/bases/:id/sql", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const sql = formSecret(body, "sql");
      const isPlan = formText(body, "as") === "plan";
      let view: preact.VNode;
      let status: number | undefined;
      try {
        await requireReadable(ctx, currentUser, base);
        const outcome = await withRunSlot(account.id, async () =>
          runQuery(await readerTarget(ctx, base), sql, { ...RUN, signal: request.signal }, isPlan),
        );
        const advice = outcome.failure && (await advise(base, outcome.failure, sql));
        view = <QueryResults {...{ outcome, sql, advice }} />;
      } catch (error) {
        const message = messageOf(error);
        status = isHtmx(request) ? undefined : message.status;
        view = <ErrorNote>{message.text}</ErrorNote>;
      }
      if (isHtmx(request)) return answer(request, { title: "SQL", currentUser }, view);
      return editorPage(request, currentUser, base, { sql, children: view, ...(status ? { status } : {}) });
    })
    .post("/bases/:id/sql/csv", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const sql = formSecret(body, "sql");
      try {
        await requireReadable(ctx, currentUser, base);
        return await csvOf(account.id, (onRows, signal) =>
          readerTarget(ctx, base).then((target) => streamQuery(target, sql, { ...CSV, signal }, onRows)),
        );
      } catch (error) {
        const { text, status } = messageOf(error);
        const sqlState = isBasetideError(error, "query_failed") ? String(error.details.sqlState) : undefined;
        const advice = sqlState && (await advise(base, { message: text, sqlState }, sql));
        return editorPage(request, currentUser, base, {
          ...{ sql, problem: advice ? `${text}. ${advice}` : text, status },
        });
      }
    })
    .post("/bases/:id/sql/saved", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const query = { name: formText(body, "name"), sql: formSecret(body, "sql") };
      let id = "";
      const problem = await formErrorOf(async () => {
        ({ id } = await saveQuery(ctx, base, query));
      });
      if (!problem) return finish(request, `/bases/${base.id}/sql?saved=${id}`, "Query saved.");
      const { message, status } = problem;
      return editorPage(request, currentUser, base, { sql: query.sql, problem: message, status });
    })
    .post("/bases/:id/sql/saved/:query/delete", async ({ request, account, params }) => {
      const base = await find(params.id, account);
      await deleteSavedQuery(db, base, params.query);
      return finish(request, `/bases/${base.id}/sql`, "Query deleted.");
    });
}

/** A name, and how SQL writes it if it needs quotes. */
function writtenName(name: string): { name: string; written?: string } {
  const written = readableName(name);
  return written === name ? { name } : { name, written };
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

/**
 * Answers with the rows as CSV, as they arrive; reads no more than the client takes.
 *
 * @throws the error of `stream`, if it comes before the first row
 */
async function csvOf(accountId: string, stream: Stream): Promise<Response> {
  const abort = new AbortController();
  const started = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  let output!: ReadableStreamDefaultController<Uint8Array>;
  let wake = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      output = controller;
    },
    pull: () => wake(),
    cancel: () => {
      abort.abort();
      wake();
    },
  });
  let isFirst = true;
  const running = withRunSlot(accountId, () =>
    stream(async (rows, columns) => {
      const kinds = columns.map(({ type }) => (NUMERIC_TYPES.has(type) ? "number" : "text"));
      const lines = rows.map((row) => csvLine(row.map((value, at) => csvCell(value, kinds[at]!))));
      if (isFirst) lines.unshift(csvHeader(columns.map(({ name }) => name)));
      isFirst = false;
      started.resolve();
      output.enqueue(encoder.encode(lines.join("")));
      while ((output.desiredSize ?? 0) <= 0 && !abort.signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }, abort.signal),
  );
  running.then(
    () => {
      started.resolve();
      if (!abort.signal.aborted) output.close();
    },
    (error: unknown) => {
      started.reject(error);
      if (!abort.signal.aborted) output.error(error);
    },
  );
  await started.promise;
  return new Response(body, {
    headers: {
      ...securityHeaders,
      "cache-control": "no-store",
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": 'attachment; filename="query.csv"',
    },
  });
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
