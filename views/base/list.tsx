/** All bases of the account, one per line. */
import type { BaseToday } from "../../core/control/history";
import { type BaseStatus, type BaseSummary, isLive, median } from "../../core/control/status";
import { ButtonLink, Empty, Field, PageHead, SelectField, Table } from "../components";
import { Sparkline } from "../components/sparkline";
import { counted, formatDuration, inDigits } from "../format";
import { live } from "../live";
import { StateBadge } from "./state";

/** Bases on one page of the list. */
export const LIST_ROWS = 100;
/** With so few bases, the page has no search. */
const FEW = 3;
/** A list of more bases is drawn again only when it is this old, ms: in between, its polls get an empty answer. */
const MANY = 50;
const MANY_KEPT_MS = 8000;

export interface ListedBase {
  base: BaseSummary;
  status: BaseStatus;
  today: BaseToday | undefined;
}

export const listStates = {
  all: "All",
  problem: "With a problem",
  current: "Live and in sync",
  waiting: "Paced or paused",
} as const;
export const listSorts = {
  name: "Name",
  state: "Problems first",
  lag: "Lag",
  records: "Records",
  calls: "Calls today",
  issues: "Issues",
} as const;

export interface ListChoice {
  query: string;
  state: keyof typeof listStates;
  sort: keyof typeof listSorts;
  /** Of the matches, from 1. */
  page: number;
}

interface BaseListProps {
  /** The page's matches, sorted. */
  bases: ListedBase[];
  /** The number of all matches. */
  matches: number;
  choice: ListChoice;
  /** The total number of bases. */
  total: number;
  now: Date;
}

export function BaseList(props: BaseListProps) {
  const { total, choice } = props;
  const connect = (
    <>
      <ButtonLink kind="quiet" href="/account/status">
        Status page
      </ButtonLink>
      <ButtonLink kind="primary" href="/new">
        Connect a base
      </ButtonLink>
    </>
  );
  return (
    <>
      <PageHead title="Bases" actions={total > 0 ? connect : undefined} />
      {total === 0 ? (
        <Empty
          title="No bases yet"
          action={
            <ButtonLink kind="primary" href="/new">
              Connect a base
            </ButtonLink>
          }
        >
          Connect a base, and you can query its tables in SQL seconds later.
        </Empty>
      ) : (
        <>
          {total > FEW || pathOf(choice) !== "/bases" ? <Choice choice={choice} /> : null}
          <BaseRows {...props} />
        </>
      )}
    </>
  );
}

function Choice({ choice }: { choice: ListChoice }) {
  const options = (of: Record<string, string>) =>
    Object.entries(of).map(([value, text]) => ({ value, text }));
  return (
    <search>
      <form
        method="get"
        action="/bases"
        class="search list-choice"
        hx-get="/bases"
        hx-trigger="input delay:200ms, change, search"
        hx-target="#bases"
        hx-swap="outerMorph"
      >
        <Field label="Find a base" name="q" type="search" value={choice.query} />
        <SelectField label="State" name="state" value={choice.state} options={options(listStates)} />
        <SelectField label="Sort by" name="sort" value={choice.sort} options={options(listSorts)} />
        <button type="submit" class="button needs-no-script">
          Find
        </button>
      </form>
    </search>
  );
}

/** The part that refreshes itself. */
export function BaseRows({ bases, matches, choice, total, now }: BaseListProps) {
  return (
    <div id="bases" class="card" {...live(pollOf(choice, total, now), 2)}>
      <p class="muted small" role="status">
        {matches === total ? counted(total, "base") : `${inDigits(matches)} of ${counted(total, "base")}`}
      </p>
      {bases.length === 0 ? (
        <p class="wrap">
          {choice.query === ""
            ? "No base is in this state."
            : `No base matches “${choice.query}” by name, id or database.`}{" "}
          <a href="/bases">Show all</a>
        </p>
      ) : (
        <Table
          caption="Bases"
          rows={bases}
          idOf={({ base }) => base.id}
          columns={(column) => [
            column({ text: "Name", isHead: true, class: "wrap" }, ({ base }) => (
              <a href={`/bases/${base.id}`}>
                <bdi>{base.name || base.sourceBaseId}</bdi>
              </a>
            )),
            column("State", ({ base, status }) => (
              <span class="badges">
                <StateBadge status={status} now={now} />
                {base.issues > 0 ? (
                  <a class="badge yellow" href={`/bases/${base.id}/issues`}>
                    {counted(base.issues, "issue")}
                  </a>
                ) : null}
              </span>
            )),
            column({ text: "Lag", isNumber: true, class: "nowrap" }, (listed) => {
              const lagMs = lagOf(listed, now);
              return lagMs === null ? "–" : formatDuration(lagMs);
            }),
            column({ text: "Records", isNumber: true }, ({ base }) => inDigits(base.records)),
            column({ text: "Calls today", isNumber: true }, ({ today }) => inDigits(today?.calls ?? 0)),
            column("Lag, 24 h", ({ today }) => (
              <Sparkline values={today?.lagMs ?? []} summary={sparkText(today)} />
            )),
          ]}
        />
      )}
      {matches > LIST_ROWS ? <Pager choice={choice} matches={matches} /> : null}
    </div>
  );
}

function Pager({ choice, matches }: Pick<BaseListProps, "choice" | "matches">) {
  const { page } = choice;
  const first = (page - 1) * LIST_ROWS + 1;
  const last = Math.min(matches, page * LIST_ROWS);
  return (
    <nav class="pager" aria-label="Pages">
      <span class="muted">
        {inDigits(first)}–{inDigits(last)} of {inDigits(matches)}
      </span>
      {page > 1 ? (
        <a rel="prev" class="button small" href={pathOf({ ...choice, page: page - 1 })}>
          Previous
        </a>
      ) : null}
      {last < matches ? (
        <a rel="next" class="button small" href={pathOf({ ...choice, page: page + 1 })}>
          Next
        </a>
      ) : null}
    </nav>
  );
}

/**
 * The age of the data. A live base reads nothing while nothing changes: its lag is the time that a change takes, and
 * unknown until something has changed.
 */
export function lagOf({ base, status }: Pick<ListedBase, "base" | "status">, now: Date): number | null {
  if (!status.asOf) return null;
  if (status.isCurrent && isLive(base)) return base.sync?.kind === "live" ? median(base.recentSweepMs) : null;
  return Math.max(0, now.getTime() - status.asOf.getTime());
}

function sparkText(today: BaseToday | undefined): string {
  const values = today?.lagMs.flatMap((one) => one ?? []) ?? [];
  return values.length === 0
    ? "No lag recorded"
    : `At most ${formatDuration(Math.max(...values))} in 24 hours`;
}

/** Of a long list it says when the list was drawn. */
function pollOf(choice: ListChoice, total: number, now: Date): string {
  const path = pathOf(choice);
  if (total <= MANY) return path;
  return `${path}${path.includes("?") ? "&" : "?"}at=${now.getTime()}`;
}

/** Whether the poll of a long list that was drawn at `at` (ms since 1970) needs no answer yet. */
export function isFreshList(at: unknown, now: Date): boolean {
  const ageMs = now.getTime() - Number(at);
  return typeof at === "string" && ageMs >= 0 && ageMs < MANY_KEPT_MS;
}

/** The address of the list with this choice. */
function pathOf({ query, state, sort, page }: ListChoice): string {
  const search = new URLSearchParams({
    ...(query === "" ? {} : { q: query }),
    ...(state === "all" ? {} : { state }),
    ...(sort === "name" ? {} : { sort }),
    ...(page === 1 ? {} : { page: String(page) }),
  }).toString();
  return search === "" ? "/bases" : `/bases?${search}`;
}
