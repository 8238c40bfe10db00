/** The data browser: the rows of a base's tables, one record, and downloads. */
import { Elysia } from "elysia";
import type { VNode } from "preact";
import type { Base } from "../../../../core/control/bases";
import {
  browsableTables,
  browseFilters,
  browsePage,
  browseRecord,
  isTooSlow,
  readState,
  startDownload,
  type ViewState,
  writeState,
} from "../../../../core/data-browser";
import { type BasetideError, httpStatus, isBasetideError } from "../../../../core/errors";
import { allowLongAnswer } from "../../../../core/http";
import { ErrorNote } from "../../../../views/components";
import { DataFrame, IndexHint, NoTables, TablePage } from "../../../../views/data/page";
import { recordPath, tablePath } from "../../../../views/data/paths";
import { NoRecord, RecordPanel, RecordView, titleOf } from "../../../../views/data/record";
import { FilterForm } from "../../../../views/data/tools";
import { isHtmx, securityHeaders } from "../../../../views/render";
import { dataScript } from "../../assets";
import { type BaseCall, onOneBase } from "../../base-page";
import { LONGEST_LIFE_S, MOST_COOKIE, readCookie, writeCookie } from "../../cookies";
import { type ConsoleContext, goTo } from "../../page-kit";
import { requireReadable } from "../../readable";
import { answerThumbnail, THUMBNAIL_ROUTE } from "./thumbnails";

export function dataPages(ctx: ConsoleContext) {
  return new Elysia({ name: "data-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/data", async (call) => {
      const { request, base } = call;
      const tables = browsableTables(base);
      const first = tables.find(({ records }) => records > 0) ?? tables[0];
      if (first) return goTo(request, tablePath(base.id, first.name));
      return dataPage(call, { title: "Data" }, <NoTables base={base} />);
    })
    .get("/bases/:id/data/:table", async (call) => {
      const { request, currentUser, base, params } = call;
      const { table } = params;
      const query = new URL(request.url).searchParams;
      const keep = query.get("keep");
      if (keep !== null) return keepColumns(ctx, request, query, { keep, path: tablePath(base.id, table) });
      const state = stateOf(request, query);
      const known = base.tables.find(({ name }) => name === table)?.source_name;
      const title = known ?? table;
      try {
        await requireReadable(ctx, currentUser, base);
        const read = await browsePage(ctx, base, table, state);
        const panel = await openRecord(ctx, base, table, query, tablePath(base.id, table, state));
        const status = read.state.filters.some(({ problem }) => problem) ? 422 : 200;
        return dataPage(call, { title, status, table, panel }, <TablePage base={base} page={read} />);
      } catch (error) {
        if (!isShownInFrame(error)) throw error;
        const sort = state.sort?.column;
        const isSortSlow = isTooSlow(error) && sort !== undefined;
        return dataPage(
          call,
          { title, status: httpStatus[error.code], table },
          <ErrorNote title={known ?? "These rows cannot be shown now"}>
            <p>{error.message}.</p>
            {isSortSlow ? (
              <p>
                <IndexHint base={base} table={table} column={sort} />
              </p>
            ) : null}
            {writeState(state) === "" ? null : (
              <p>
                <a href={tablePath(base.id, table)}>Show the table without filters and sorting</a>
              </p>
            )}
          </ErrorNote>,
        );
      }
    })
    .get("/bases/:id/data/:table/download", async ({ request, currentUser, base, params }) => {
      await requireReadable(ctx, currentUser, base);
      const query = new URL(request.url).searchParams;
      const format = query.get("format") === "json" ? "json" : "csv";
      allowLongAnswer(request);
      const options = { format, signal: request.signal } as const;
      const { body, table } = await startDownload(ctx, base, params.table, readState(query), options);
      return new Response(body, {
        headers: {
          ...securityHeaders,
          "cache-control": "no-store",
          // Not a type that is compressed whole: the rows are sent as they are read.
          "content-type":
            format === "csv" ? "text/csv; charset=utf-8; header=present" : "application/octet-stream",
          "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(`${table.name}.${format}`)}`,
        },
      });
    })
    .get("/bases/:id/data/:table/filters", async ({ request, currentUser, page, base, params }) => {
      await requireReadable(ctx, currentUser, base);
      const state = readState(new URL(request.url).searchParams);
      if (!isHtmx(request)) return goTo(request, tablePath(base.id, params.table, state));
      const read = await browseFilters(ctx, base, params.table, state);
      return page({ title: "Filters" }, <FilterForm isDraft baseId={base.id} page={read} />);
    })
    .get(THUMBNAIL_ROUTE, (call) => answerThumbnail(ctx, call))
    .get("/bases/:id/data/:table/:record", async (call) => {
      const { request, currentUser, page, base, params } = call;
      await requireReadable(ctx, currentUser, base);
      const record = await browseRecord(ctx, base, params.table, params.record);
      const title = titleOf(record);
      if (isHtmx(request)) return page({ title }, <RecordPanel base={base} record={record} />);
      const query = new URL(request.url).searchParams;
      const closed = recordPath(base.id, params.table, params.record);
      const panel = await openRecord(ctx, base, params.table, query, closed);
      return dataPage(
        call,
        { title, table: params.table, panel },
        <RecordView base={base} record={record} />,
      );
    });
}

/** @param facts.table the one that the list of tables marks */
function dataPage(
  { base, basePage }: BaseCall,
  { table, panel, ...facts }: { title: string; status?: number; table?: string; panel?: VNode | undefined },
  view: VNode,
): Response {
  return basePage(
    { place: "data", ...facts },
    <>
      <DataFrame base={base} table={table} panel={panel}>
        {view}
      </DataFrame>
      <script src={dataScript} defer />
    </>,
  );
}

/** The columns that this browser keeps for a table, as the query of a link. */
const COLUMNS = "basetide_columns";

/** The state that the address asks for; without columns in it, with those that the browser keeps. */
function stateOf(request: Request, query: URLSearchParams): ViewState {
  const state = readState(query);
  if (state.columns.length > 0) return state;
  const { columns } = readState(new URLSearchParams(readCookie(request, COLUMNS)));
  return { ...state, columns, areColumnsKept: true };
}

/** Keeps the chosen columns in a cookie of the table. A link with columns changes nothing: only the form keeps them. */
function keepColumns(
  { config }: ConsoleContext,
  request: Request,
  query: URLSearchParams,
  { keep, path }: { keep: string; path: string },
): Response {
  query.delete("keep");
  if (keep !== "shown") query.delete("col");
  const value = writeState({ columns: readState(query).columns }).slice(1);
  const isKept = value !== "" && value.length <= MOST_COOKIE;
  const options = { consoleUrl: config.consoleUrl, maxAgeS: isKept ? LONGEST_LIFE_S : 0, path };
  const headers = new Headers({ "set-cookie": writeCookie(COLUMNS, value, options) });
  return goTo(request, query.size === 0 ? path : `${path}?${query}`, headers);
}

/** The record that the address has open at the side: `<table>/<id>`, or an id of this table. */
async function openRecord(
  ctx: ConsoleContext,
  base: Base,
  table: string,
  query: URLSearchParams,
  closed: string,
) {
  const asked = query.get("record");
  if (!asked) return undefined;
  const at = asked.lastIndexOf("/");
  try {
    const record = await browseRecord(ctx, base, at < 0 ? table : asked.slice(0, at), asked.slice(at + 1));
    return <RecordPanel base={base} record={record} closed={closed} />;
  } catch (error) {
    if (!isBasetideError(error, "not_found")) throw error;
    return <NoRecord message={error.message} closed={closed} />;
  }
}

/** Errors of the table or its database: the rest of the page is shown, with the way to other tables. */
function isShownInFrame(error: unknown): error is BasetideError {
  return (
    [
      "forbidden",
      "not_found",
      "replica_unavailable",
      "replica_busy",
      "destination_invalid",
      "invalid_request",
    ] as const
  ).some((code) => isBasetideError(error, code));
}
