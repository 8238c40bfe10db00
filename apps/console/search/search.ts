/**
 * The console's search: bases, tables and columns of one account, and the pages, actions, settings and documentation
 * that everyone has. The names of the account's things come from two queries, which are limited to it.
 */

import type { Db } from "../../../core/context";
import type { CurrentUser } from "../../../core/control/accounts";
import { searchBases, searchTables, searchTerms } from "../../../core/control/bases";
import { cutText } from "../../../core/cut-text";
import type { SearchGroup, SearchItem, SearchKind } from "../../../views/search/results";
import { allSections } from "../docs/search";
import { actionItems, type BaseContext, pageItems, settingItems } from "./places";
import { ranked } from "./rank";

export const MAX_QUERY_LENGTH = 200;
/** Rows that a query returns: enough to fill the longest group. */
const MOST_ROWS = 60;

interface SearchRequest {
  query: string;
  /** The base of the page that asks. Another account's counts as none. */
  baseId: string | undefined;
  /** Only these. */
  kind: SearchKind | undefined;
}

/** Per kind; the order of groups that match equally well, and without a query. */
const limits: Record<SearchKind, { short: number; long: number; unasked: number }> = {
  base: { short: 6, long: 50, unasked: 0 },
  action: { short: 5, long: 20, unasked: 7 },
  page: { short: 5, long: 30, unasked: 21 },
  table: { short: 6, long: 40, unasked: 0 },
  column: { short: 6, long: 40, unasked: 0 },
  setting: { short: 5, long: 30, unasked: 0 },
  docs: { short: 5, long: 30, unasked: 0 },
};
const kinds = Object.keys(limits) as SearchKind[];
/** Names that the account gave. The names of ours are known, so that a part of a word is not meant to find them. */
const given: readonly SearchKind[] = ["base", "table", "column"];

export function readSearch({ q, base, kind }: Record<string, unknown>): SearchRequest {
  return {
    query: typeof q === "string" ? cutText(q, MAX_QUERY_LENGTH).trim() : "",
    baseId: typeof base === "string" && base !== "" ? cutText(base, MAX_QUERY_LENGTH) : undefined,
    kind: kinds.find((one) => one === kind),
  };
}

/** @param options.isLong for the page; the palette shows the best few of each kind */
export async function search(
  db: Db,
  currentUser: CurrentUser,
  request: SearchRequest,
  options: { isLong: boolean },
): Promise<SearchGroup[]> {
  const { account } = currentUser;
  const terms = searchTerms(request.query);
  const isAsked = (kind: SearchKind) => request.kind === undefined || request.kind === kind;
  const wantsTables = isAsked("table") || isAsked("column");
  const [bases, tables, base] = await Promise.all([
    isAsked("base") ? searchBases(db, account.id, terms, MOST_ROWS) : [],
    wantsTables ? searchTables(db, account.id, terms, { limit: MOST_ROWS, baseId: request.baseId }) : [],
    request.kind === undefined ? contextOf(db, account.id, request.baseId) : undefined,
  ]);
  const found: Record<SearchKind, () => SearchItem[]> = {
    base: () =>
      bases.map(({ id, name, sourceBaseId, database }) => ({
        kind: "base",
        text: name || sourceBaseId,
        about: database,
        aliases: `${sourceBaseId} ${database} ${id}`,
        href: `/bases/${id}`,
      })),
    action: () => actionItems(base, account.role),
    page: () => pageItems(base, account.isOperator),
    table: () =>
      tables.map(({ baseId, baseName, name, sqlName }) => ({
        kind: "table",
        text: name,
        about: baseName,
        context: `${baseName} ${sqlName}`,
        href: `/bases/${baseId}/data/${encodeURIComponent(sqlName)}`,
      })),
    column: () =>
      tables.flatMap(({ baseId, baseName, name, sqlName, fieldNames }) =>
        fieldNames.map(
          (field): SearchItem => ({
            kind: "column",
            text: field,
            about: `${name} · ${baseName}`,
            context: `${name} ${baseName}`,
            href: `/bases/${baseId}/schema?table=${encodeURIComponent(sqlName)}#columns`,
          }),
        ),
      ),
    setting: () => settingItems(base),
    docs: docsItems,
  };
  return kinds
    .filter(isAsked)
    .map((kind) => {
      const { short, long, unasked } = limits[kind];
      const isUnasked = terms.length === 0 && request.kind === undefined;
      const most = isUnasked ? unasked : options.isLong ? long : short;
      const items = most === 0 ? [] : ranked(found[kind](), terms, { byWord: !given.includes(kind) });
      return { kind, items: items.slice(0, most), best: items[0]?.score ?? 0, hasMore: items.length > most };
    })
    .filter(({ items }) => items.length > 0)
    .toSorted((a, b) => b.best - a.best);
}

/** The base that the actions and settings are those of: the page's, or the account's only one. */
async function contextOf(db: Db, accountId: string, baseId = ""): Promise<BaseContext | undefined> {
  const rows = await db<(BaseContext & { isAsked: boolean })[]>`
    select id, coalesce(nullif(name, ''), source_base_id) as name, id = ${baseId} as "isAsked" from bases
    where account_id = ${accountId} and state <> 'deleting' order by id <> ${baseId} limit 2`;
  return rows.find(({ isAsked }) => isAsked) ?? (rows.length === 1 ? rows[0] : undefined);
}

function docsItems(): SearchItem[] {
  return allSections().map(({ href, title, heading }) => ({
    kind: "docs",
    text: heading ?? title,
    ...(heading === undefined ? {} : { about: title, context: title }),
    href,
  }));
}
