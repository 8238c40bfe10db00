/** Current call budgets: the calls of a workspace this month, by kind, and what is left for each base. */
import type { Db } from "../../context";
import { nextMonth, ownCallsKey, platformFacts } from "../../source";
import type { Allowance } from "../../sync/host";
import { DAY_MS, utcDay } from "../../time-units";
import {
  type DayUse,
  FORECAST_DAYS,
  type Forecast,
  forecastOf,
  leftForSync,
  type MonthUse,
  rateOf,
} from "./budget-rule";
import { leftKey, type Plan, sourcePlans, type Workspace } from "./workspaces";

/** Above their cap, the source only slows the bases down; with other plans it blocks them, or has no cap. */
const SLOWED_PLANS = sourcePlans.filter(({ beyond }) => beyond === "slowed").map(({ id }) => id);

/** Up to this number of bases, all requests together stay within every source's limit per user. */
const BASES_WITHIN_USER_LIMIT = Math.min(
  ...platformFacts.map(({ limits }) => Math.floor(limits.userRequestsPerWindow / limits.requestsPerWindow)),
);

const NO_CALLS: MonthUse = { sync: 0, client: 0 };

/** `spent`: sync has no calls left until the month ends, and clients go on; `over`: above the cap itself. */
type BudgetState = "no_cap" | "inside" | "spent" | "over";

export interface Budget {
  workspaceId: string;
  name: string;
  plan: Plan;
  callsPerMonth: number | null;
  reserve: number;
  /** Of the month, over all bases; the calls by kind are up to 10 s old. */
  used: MonthUse & {
    /** Those of the clients' calls that the console made. */
    console: number;
    /** `2026-11`, UTC. */
    month: string;
    /** The purposes of sync's calls (`payloads`, `records`, `sweep`, `schema`, `freshness`, `webhooks`). */
    byKind: Record<string, number>;
  };
  forecast: Forecast;
  state: BudgetState;
  /** Calls that sync may still make; null without a cap. */
  left: number | null;
  /** For each base that syncs; null without a cap. */
  ratePerHour: number | null;
  /** When the next month begins. */
  endsAt: Date;
  /** The source answers only twice a second, at least until then; not `isCertain`: inferred from its refusals. */
  slowed: { until: Date; isCertain: boolean } | null;
}

/** Budgets by workspace id. */
export async function budgetsOf(
  db: Db,
  workspaceIds: string[],
  now = new Date(),
): Promise<Map<string, Budget>> {
  if (workspaceIds.length === 0) return new Map();
  const rows = await workspaceUse(db, workspaceIds, now);
  return new Map(rows.map((row) => [row.id, toBudget(row, now)]));
}

/** The workspaces with the current state of their budgets; without those that were deleted a moment ago. */
export async function withBudgets(
  db: Db,
  workspaces: Workspace[],
): Promise<{ workspace: Workspace; budget: Budget }[]> {
  const budgets = await budgetsOf(
    db,
    workspaces.map(({ id }) => id),
  );
  return workspaces.flatMap((workspace) => {
    const budget = budgets.get(workspace.id);
    return budget ? [{ workspace, budget }] : [];
  });
}

export async function budgetOf(
  db: Db,
  workspace: Pick<Workspace, "id">,
  now = new Date(),
): Promise<Budget | null> {
  return (await budgetsOf(db, [workspace.id], now)).get(workspace.id) ?? null;
}

/**
 * Returns the allowance of each of these bases that exists. Records a workspace as slowed if it is above a cap
 * beyond which the source slows it down, for clients too.
 */
export async function allowancesOf(db: Db, baseIds: string[], now = new Date()): Promise<Allowance[]> {
  const bases = await db<{ id: string; workspace_id: string | null; user: string | null }[]>`
    select b.id, b.workspace_id,
      case when (
        -- No more than needed: to count all of a user's bases for each of them takes quadratic time.
        select count(*) from (
          select from bases as o
          where o.platform = b.platform and o.source_user_id = b.source_user_id
            and o.state not in ('paused', 'deleting')
          limit ${BASES_WITHIN_USER_LIMIT + 1}
        ) as syncing
      ) > ${BASES_WITHIN_USER_LIMIT} then b.platform || ':' || b.source_user_id end as user
    from bases as b where b.id = any (${baseIds})`;
  const ids = [...new Set(bases.flatMap((base) => base.workspace_id ?? []))];
  const budgets = new Map<string, WorkspaceUse>();
  if (ids.length > 0) for (const row of await workspaceUse(db, ids, now)) budgets.set(row.id, row);
  for (const row of budgets.values()) await slowWhatIsOver(db, row, now);
  return bases.map((base) => {
    const row = base.workspace_id === null ? undefined : budgets.get(base.workspace_id);
    const left = row ? leftForSync(row, row) : Infinity;
    const sharing = row?.syncing ?? 1;
    return {
      baseId: base.id,
      workspace: row ? { id: row.id, name: row.name } : null,
      left,
      bases: sharing,
      ratePerSecond: left === Infinity ? Infinity : rateOf(left, now, sharing),
      endsAt: nextMonth(now),
      user: base.user,
    };
  });
}

/** The budget of a base's workspace, as part of the base. */
export function toBudgetJson(budget: Budget) {
  return {
    workspace_id: budget.workspaceId,
    plan: budget.plan,
    calls_per_month: budget.callsPerMonth,
    reserve: budget.reserve,
    ...toUseJson(budget),
    spent: budget.state === "spent" || budget.state === "over",
  };
}

function toUseJson({ used, forecast, state, left, ratePerHour, slowed }: Budget) {
  return {
    used: {
      ...{ month: used.month, sync: used.sync, client: used.client, console: used.console },
      by_kind: used.byKind,
    },
    forecast: {
      calls: forecast.calls,
      next_day: forecast.nextDay,
      at: forecast.at.toISOString(),
      ends_inside: forecast.endsInside,
      missing: forecast.missing,
    },
    state,
    left,
    rate_per_hour: ratePerHour,
    slowed: slowed && { until: slowed.until.toISOString(), is_certain: slowed.isCertain },
  };
}

function toBudget(row: WorkspaceUse, now: Date): Budget {
  const { callsPerMonth, reserve, sync, client } = row;
  const left = leftForSync(row, row);
  const isCapped = callsPerMonth !== null;
  return {
    workspaceId: row.id,
    name: row.name,
    plan: row.plan,
    callsPerMonth,
    reserve,
    used: { sync, client, console: row.console, month: utcDay(now).slice(0, 7), byKind: row.by_kind },
    forecast: forecastOf(row, row, wholeDays(row, now), row.days[utcDay(now)] ?? NO_CALLS, now),
    state: stateOf(row, left),
    left: isCapped ? left : null,
    ratePerHour: isCapped ? Math.round(rateOf(left, now, row.syncing) * 36_000) / 10 : null,
    endsAt: nextMonth(now),
    slowed:
      row.slowed_until === null ? null : { until: row.slowed_until, isCertain: row.is_certain ?? false },
  };
}

function stateOf(row: WorkspaceUse, left: number): BudgetState {
  if (row.callsPerMonth === null) return "no_cap";
  if (row.sync + row.client >= row.callsPerMonth) return "over";
  // Each base has its share, and less than one call is none.
  return left < Math.max(1, row.syncing) ? "spent" : "inside";
}

/**
 * The last whole days with the bases that the workspace has now. There are none if another account has connected one of
 * them: its calls of a day are not told apart.
 */
function wholeDays({ days, since }: WorkspaceUse, now: Date): DayUse[] {
  if (since === null) return [];
  const midnight = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  const whole: DayUse[] = [];
  for (let ms = midnight - FORECAST_DAYS * DAY_MS; ms < midnight; ms += DAY_MS) {
    const at = new Date(ms);
    if (since.getTime() <= ms) whole.push({ at, ...(days[utcDay(at)] ?? NO_CALLS) });
  }
  return whole;
}

async function slowWhatIsOver(db: Db, row: WorkspaceUse, now: Date): Promise<void> {
  const isOver = SLOWED_PLANS.includes(row.plan) && stateOf(row, 0) === "over";
  if (!isOver || (row.is_certain && row.all_slowed)) return;
  const until = nextMonth(now).getTime();
  await db`
    select quota_throttle(key, ${until}::float8, true, ${now.getTime()}::float8, account_id)
    from (
      select distinct b.platform || ':' || b.source_base_id as key, w.account_id
      from bases as b join workspaces as w on w.id = b.workspace_id
      where w.id = ${row.id} and w.plan = any (${SLOWED_PLANS}) order by key
    ) as slowed`;
}

/** Reads workspaces and their calls in the month of `now`, in one statement. */
async function workspaceUse(db: Db, ids: string[], now: Date): Promise<WorkspaceUse[]> {
  const month = `${now.toISOString().slice(0, 7)}-01`;
  return db<WorkspaceUse[]>`
    with keys as (
      select b.workspace_id, b.platform || ':' || b.source_base_id as key,
        bool_or(b.state not in ('paused', 'deleting')) as is_syncing, max(b.created_at) as connected_at,
        -- Of a base that other accounts have connected, too, sync's calls are counted by account.
        case when bool_or(not quota_is_sole(b.platform || ':' || b.source_base_id, b.account_id))
          then array_agg(${ownCallsKey("")} || b.id) end as own_keys
      from bases as b where b.workspace_id = any (${ids}) group by 1, 2
      union all
      select id, ${leftKey("")} || id, false, null, null from workspaces where id = any (${ids})
    ),
    days as (
      select k.workspace_id, d.day, (select sum(h) from unnest(d.sync) as h) as sync,
        (select sum(h) from unnest(d.client) as h) as client
      from keys as k join quota_days as d using (key)
      where d.day >= ${now}::timestamptz at time zone 'UTC' - make_interval(days => ${FORECAST_DAYS + 1}::int)
    ),
    own_calls as (
      select k.workspace_id, c.kind, c.calls from keys as k join quota_kinds as c on c.key = any (k.own_keys)
      where c.month = ${month}::date
    ),
    calls as (
      select k.workspace_id, case when k.own_keys is null then c.sync else 0 end as sync, c.client
      from keys as k join quota_calls as c using (key)
      where c.month = ${month}::date
      union all
      select workspace_id, calls, 0 from own_calls
    ),
    kinds as (
      select workspace_id, kind, sum(calls)::float8 as calls
      from (
        select k.workspace_id, c.kind, c.calls from keys as k join quota_kinds as c using (key)
        where c.month = ${month}::date and k.own_keys is null
        union all
        select workspace_id, kind, calls from own_calls
      ) as all_kinds
      group by 1, 2
    )
    select w.id, w.name, w.plan, w.calls_per_month as "callsPerMonth", w.reserve,
      (select coalesce(sum(c.sync), 0)::float8 from calls as c where c.workspace_id = w.id) as sync,
      (select coalesce(sum(c.client), 0)::float8 from calls as c where c.workspace_id = w.id) as client,
      (select coalesce(sum(h), 0)::float8 from keys as k join quota_callers as c using (key), unnest(c.calls) as h
        where k.workspace_id = w.id and c.caller = 'console' and c.day >= ${month}::date) as console,
      (select coalesce(json_object_agg(k.kind, k.calls), '{}') from kinds as k where k.workspace_id = w.id) as by_kind,
      (select count(*)::int from keys as k where k.workspace_id = w.id and k.is_syncing) as syncing,
      (select coalesce(json_object_agg(d.day, json_build_object('sync', d.sync, 'client', d.client)), '{}') from (
        select day, sum(sync)::float8 as sync, sum(client)::float8 as client
        from days where workspace_id = w.id group by day) as d) as days,
      (select case when bool_and(k.own_keys is null) then max(k.connected_at) end
        from keys as k where k.workspace_id = w.id) as since,
      s.until as slowed_until, s.is_certain, s.slowed = s.keys as all_slowed
    from workspaces as w, lateral (
      select max(s.until) as until, bool_or(s.is_certain) as is_certain, count(s.key) as slowed,
        count(*) filter (where k.key not like ${leftKey("%")}) as keys
      from keys as k left join lateral (
        select max(o.until) as until, bool_or(o.is_certain) as is_certain, max(o.key) as key from quota_throttled as o
        where o.key = k.key and o.until > ${now}::timestamptz and o.account_id in ('', w.account_id)
      ) as s on true
      where k.workspace_id = w.id
    ) as s
    where w.id = any (${ids})`;
}

interface WorkspaceUse {
  id: string;
  name: string;
  plan: Plan;
  callsPerMonth: number | null;
  reserve: number;
  sync: number;
  client: number;
  console: number;
  by_kind: Record<string, number>;
  /** Source bases that are synced. */
  syncing: number;
  /** Calls of the last days, by `2026-11-29`. */
  days: Record<string, MonthUse>;
  /** When the newest base was connected; null: there is none, or another account has connected one, too. */
  since: Date | null;
  slowed_until: Date | null;
  is_certain: boolean | null;
  all_slowed: boolean;
}
