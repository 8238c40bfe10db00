/** Reads the current states: the indicator that the console shows, call budgets, and schema changes. */
import type { TransactionSql } from "postgres";
import type { Db } from "../context";
import { type Budget, budgetsOf } from "../control/budgets";
import { type CurrentPeriod, periodOf } from "../control/history";
import { type BaseSummary, indicatorOf, selectBaseSummaries } from "../control/status";
import type { AlertFacts, AlertKind, BudgetLevel } from "./kinds";
import type { BaseCondition } from "./rules";
import { describeChange, isBreaking, type SchemaChangeRow } from "./schema-format";

/** Bases read in one batch; between batches the process does other work. */
const BATCH = 500;
/** The most schema changes that are listed one by one. */
const MAX_CHANGES = 10;

interface SeenBase {
  id: string;
  accountId: string;
  condition: BaseCondition;
  /** Why it is not current; null: it is. */
  period: CurrentPeriod | null;
  facts: Pick<AlertFacts, "name" | "reason"> & { code?: string; since?: Date };
}

/** Reads all bases as of `now`. */
export async function* seenBases(db: Db, now: Date): AsyncGenerator<SeenBase> {
  for (let after = ""; ; ) {
    const rows = await db<{ id: string }[]>`
      select id from bases where id > ${after} order by id limit ${BATCH}`;
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0)
      yield* (await selectBaseSummaries(db, db`b.id = any (${ids})`)).map((base) => see(base, now));
    if (ids.length < BATCH) return;
    after = ids.at(-1)!;
  }
}

function see(base: BaseSummary, now: Date): SeenBase {
  const { color, reason } = indicatorOf(base, now);
  const { id, accountId, error } = base;
  const facts = {
    name: base.name || base.sourceBaseId,
    reason,
    ...(error ? { code: error.code, since: error.since } : {}),
  };
  return { id, accountId, condition: conditionOf(base.state, color), period: periodOf(base, now), facts };
}

export function conditionOf(state: BaseSummary["state"], color: string): BaseCondition {
  if (state === "paused" || state === "moving" || state === "deleting") return "frozen";
  if (state === "needs_attention") return "needs_attention";
  return color === "red" ? "red" : "well";
}

interface SeenBudget {
  workspaceId: string;
  accountId: string;
  level: BudgetLevel;
  facts: Pick<AlertFacts, "name" | "reason" | "endsAt">;
}

/** Reads the budgets of workspaces that have a cap and bases. */
export async function seenBudgets(db: Db, now: Date): Promise<SeenBudget[]> {
  const rows = await db<{ id: string; accountId: string }[]>`
    select id, account_id as "accountId" from workspaces as w
    where calls_per_month is not null and exists (select from bases where workspace_id = w.id)`;
  const budgets = await budgetsOf(
    db,
    rows.map(({ id }) => id),
    now,
  );
  return rows.flatMap(({ id, accountId }) => {
    const budget = budgets.get(id);
    return budget ? [{ workspaceId: id, accountId, level: levelOf(budget), facts: budgetFacts(budget) }] : [];
  });
}

function levelOf({ state, forecast }: Budget): BudgetLevel {
  if (state === "over" || state === "spent") return state;
  return forecast.endsInside === false ? "forecast" : "inside";
}

function budgetFacts({ name, used, callsPerMonth, forecast, endsAt }: Budget) {
  const calls = used.sync + used.client;
  const reason =
    `${calls} of ${callsPerMonth} calls are used in ${used.month}, ${used.sync} by sync, ` +
    `${used.client - used.console} by your apps and ${used.console} by the console${forecast.calls === null ? "" : `; the forecast for the month is ${forecast.calls}`}`;
  return { name, reason, endsAt: endsAt.toISOString() };
}

interface SeenChanges {
  baseId: string;
  accountId: string;
  reportedAt: Date | null;
  firstAt: Date;
  lastId: string;
  /** One alert of each kind that occurred. */
  alerts: { kind: ChangeAlert; facts: ChangeFacts }[];
}

interface SeenProposals {
  baseId: string;
  accountId: string;
  reportedAt: Date | null;
  firstAt: Date;
  ids: string[];
  facts: Pick<AlertFacts, "name" | "changes" | "changeCount" | "proposal">;
}

/** Reads proposals that wait and were not announced. Each is announced once: `announced_at` is set with the alert. */
export async function seenProposals(tx: TransactionSql, now: Date): Promise<SeenProposals[]> {
  const rows = await tx<
    (Omit<SeenProposals, "facts"> & { name: string; proposals: { by: string | null; note: string }[] })[]
  >`
    select s.base_id as "baseId", b.account_id as "accountId", coalesce(nullif(b.name, ''), b.source_base_id) as name,
      (select max(announced_at) from change_sets where base_id = s.base_id and is_proposal) as "reportedAt",
      min(s.created_at) as "firstAt", array_agg(s.id order by s.created_at, s.id) as ids,
      jsonb_agg(jsonb_build_object('by', s.created_by, 'note', s.note) order by s.created_at, s.id) as proposals
    from change_sets as s join bases as b on b.id = s.base_id
    where s.is_proposal and s.state = 'proposed' and s.announced_at is null and s.expires_at > ${now}
    group by s.base_id, b.account_id, b.name, b.source_base_id`;
  return rows.map(({ name, proposals, ...rest }) => {
    const changes = proposals
      .slice(0, MAX_CHANGES)
      .map(({ by, note }) => `${by ?? "Basetide"}: ${note || "without a note"}`);
    const { ids } = rest;
    const only = ids.length === 1 ? { proposal: ids[0]! } : {};
    return { ...rest, facts: { name, changes, changeCount: ids.length, ...only } };
  });
}

type ChangeAlert = Extract<AlertKind, "new_table" | "breaking_change" | "schema_changed">;
type ChangeFacts = Pick<AlertFacts, "name" | "changes" | "changeCount">;

/**
 * Reads schema changes that no alert has reported. The tables that a first sync finds are not changes: a base is
 * observed once its first sync is complete.
 */
export async function seenChanges(tx: TransactionSql, now: Date): Promise<SeenChanges[]> {
  await tx`
    insert into alert_states (base_id, kind, since, cursor)
    select b.id, 'schema_changed', ${now}, (select coalesce(max(id), 0) from schema_changes where base_id = b.id)
    from bases as b
    where b.sync_completed_at is not null and not exists (
      select from alert_states as s where s.base_id = b.id and s.kind = 'schema_changed')`;
  // A rebuild of a table carries out other changes, and is no change by itself.
  const rows = await tx<(Omit<SeenChanges, "alerts"> & { name: string; changes: SchemaChangeRow[] })[]>`
    select s.base_id as "baseId", b.account_id as "accountId", s.reported_at as "reportedAt", n.first_at as "firstAt",
      n.last_id as "lastId", coalesce(nullif(b.name, ''), b.source_base_id) as name, n.changes
    from alert_states as s join bases as b on b.id = s.base_id,
      lateral (
        select min(c.seen_at) as first_at, max(c.id) as last_id,
          json_agg(json_build_object('kind', c.kind, 'table', c.table_name, 'field', c.field_name,
            'before', nullif(c.before, 'null'), 'after', nullif(c.after, 'null')) order by c.id) as changes
        from schema_changes as c
        where c.base_id = s.base_id and c.id > s.cursor and c.kind <> 'table_rebuilt'
      ) as n
    where s.kind = 'schema_changed' and n.last_id is not null`;
  return rows.map(({ name, changes, ...rest }) => ({ ...rest, alerts: alertsAbout(name, changes) }));
}

function alertsAbout(name: string, changes: SchemaChangeRow[]): SeenChanges["alerts"] {
  const groups = Object.groupBy(changes, alertAbout);
  return changeAlerts.flatMap((kind) => {
    const { [kind]: of = [] } = groups;
    const facts = { name, changes: of.slice(0, MAX_CHANGES).map(describeChange), changeCount: of.length };
    return of.length > 0 ? [{ kind, facts }] : [];
  });
}

const changeAlerts: ChangeAlert[] = ["new_table", "breaking_change", "schema_changed"];

function alertAbout(change: SchemaChangeRow): ChangeAlert {
  if (change.kind === "table_waiting") return "new_table";
  return isBreaking(change) ? "breaking_change" : "schema_changed";
}
