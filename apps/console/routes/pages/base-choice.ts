/** Which bases the list shows, and in which order. */
import { cutText } from "../../../../core/cut-text";
import {
  LIST_ROWS,
  type ListChoice,
  type ListedBase,
  lagOf,
  listSorts,
  listStates,
} from "../../../../views/base/list";
import { MAX_QUERY_LENGTH } from "../../search/search";

/** Unknown values count as the default ones. */
export function readChoice({ q, state, sort, page }: Record<string, unknown>): ListChoice {
  return {
    query: typeof q === "string" ? cutText(q.trim(), MAX_QUERY_LENGTH) : "",
    state: isKey(listStates, state) ? state : "all",
    sort: isKey(listSorts, sort) ? sort : "name",
    page: Math.max(1, Math.floor(Number(page)) || 1),
  };
}

/** The page of the choice: the last one if there are not so many matches. */
export function withinPages(choice: ListChoice, matches: number): ListChoice {
  return { ...choice, page: Math.min(choice.page, Math.max(1, Math.ceil(matches / LIST_ROWS))) };
}

/** @param listed ordered by name: of bases that are equal otherwise, this order stays */
export function choose(listed: ListedBase[], { query, state, sort }: ListChoice, now: Date): ListedBase[] {
  const found = listed.filter((one) => matches(one, query.toLowerCase()) && isIn(one, state));
  if (sort === "name") return found;
  const rank = (one: ListedBase) => rankOf(one, sort, now);
  return found
    .map((one) => ({ one, rank: rank(one) }))
    .toSorted((a, b) => b.rank - a.rank)
    .map(({ one }) => one);
}

/** The greatest first. */
function rankOf(one: ListedBase, sort: Exclude<ListChoice["sort"], "name">, now: Date): number {
  const { base, status, today } = one;
  switch (sort) {
    case "state":
      return { red: 3, yellow: 2, neutral: 1, green: 0 }[status.color];
    case "lag":
      return lagOf(one, now) ?? -1;
    case "records":
      return base.records;
    case "calls":
      return today?.calls ?? 0;
    case "issues":
      return base.issues;
  }
}

function isIn({ base, status }: ListedBase, state: ListChoice["state"]): boolean {
  const isWaiting = status.color === "neutral" || base.state === "paused" || base.state === "deleting";
  switch (state) {
    case "all":
      return true;
    case "current":
      return status.isCurrent;
    case "waiting":
      return isWaiting;
    case "problem":
      return !status.isCurrent && !isWaiting;
  }
}

function matches({ base }: ListedBase, search: string): boolean {
  return [base.name, base.sourceBaseId, base.database, base.id].some((text) =>
    text.toLowerCase().includes(search),
  );
}

function isKey<T extends object>(of: T, key: unknown): key is keyof T {
  return typeof key === "string" && Object.hasOwn(of, key);
}
