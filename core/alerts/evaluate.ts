/**
 * Evaluates all states that may cause an alert, in one process at a time, and writes the alerts into the outbox.
 *
 * A4. Reading, saving the states and the outbox are one transaction, under the lock of the clock's row: a process
 * that dies in between has sent nothing and lost nothing, and concurrent evaluations run one after the other.
 */
import type { TransactionSql } from "postgres";
import type { Context } from "../context";
import { type CurrentPeriod, savePeriods } from "../control/history";
import { jsonParameter } from "../postgres";
import { composeMessages } from "./compose";
import type { AlertFacts, AlertKind } from "./kinds";
import { addNotices, addStandingNotices } from "./notices";
import { seenBases, seenBudgets, seenChanges, seenProposals } from "./observe";
import { due, stepBudget, stepHealth, UNSEEN } from "./rules";
import {
  changedHealth,
  healthIn,
  isSame,
  loadStates,
  type StateChange,
  type States,
  saveStates,
} from "./states";

/** Longest pause between two statements of an evaluation, ms; after it, the process counts as frozen. */
const FROZEN_MS = 60_000;

interface EvaluateOptions {
  /** Minimum time since the last evaluation, ms; before that, nothing is done. */
  everyMs: number;
  /** Defaults to the database's clock. */
  now?: Date | undefined;
}

interface NewAlert {
  accountId: string;
  baseId?: string;
  workspaceId?: string;
  kind: AlertKind;
  facts: AlertFacts;
}

/** The result of one evaluation. */
interface Observation {
  alerts: NewAlert[];
  changes: StateChange[];
  periods: Map<string, CurrentPeriod | null>;
  /** Accounts for which further alerts are about to follow. */
  settling: Set<string>;
}

/** @returns the number of new alerts; null if no evaluation was due, or another process runs one */
export async function evaluate(
  ctx: Pick<Context, "db" | "config">,
  { everyMs, now: given }: EvaluateOptions,
): Promise<number | null> {
  return ctx.db.begin(async (tx) => {
    // A process that freezes here must not keep the others from evaluating.
    const [clock] = await tx<{ now: Date }[]>`
      select coalesce(${given ?? null}::timestamptz, now()) as now,
        set_config('idle_in_transaction_session_timeout', ${String(FROZEN_MS)}, true)
      from alert_clock
      where checked_at <= coalesce(${given ?? null}::timestamptz, now()) - ${everyMs} * interval '1 ms'
      for update skip locked`;
    if (!clock) return null;
    const { now } = clock;
    const observation: Observation = { alerts: [], changes: [], periods: new Map(), settling: new Set() };
    const states = await loadStates(tx);
    await observeBases(ctx, states, now, observation);
    await observeBudgets(ctx, states, now, observation);
    await observeSchemaChanges(tx, now, observation);
    await observeProposals(tx, now, observation);
    await saveStates(tx, observation.changes);
    await savePeriods(tx, observation.periods, now);
    const ids = await insertAlerts(tx, observation.alerts, now);
    const hasMail = ctx.config.smtpUrl !== undefined;
    await addNotices(tx, ids, { hasMail });
    await addStandingNotices(tx, { hasMail });
    await composeMessages(tx, observation.settling, now);
    await tx`update alert_clock set checked_at = ${now}`;
    return ids.length;
  });
}

async function observeBases(
  { db }: Pick<Context, "db">,
  states: States,
  now: Date,
  observation: Observation,
): Promise<void> {
  // Reads on another connection, outside the transaction, with the code that the console uses.
  for await (const { id, accountId, condition, period, facts } of seenBases(db, now)) {
    observation.periods.set(id, period);
    const before = healthIn(states, id);
    const { after, tell, isSettling } = stepHealth(before, condition, now);
    observation.changes.push(...changedHealth(id, before, after));
    if (isSettling) observation.settling.add(accountId);
    if (!tell) continue;
    const since = tell.kind === "recovered" ? tell.since : (facts.since ?? tell.since);
    const { name, reason, code } = facts;
    observation.alerts.push({
      accountId,
      baseId: id,
      kind: tell.kind,
      facts: { name, reason, ...(code ? { code } : {}), since: since.toISOString(), times: tell.times },
    });
  }
}

async function observeBudgets(
  { db }: Pick<Context, "db">,
  states: States,
  now: Date,
  observation: Observation,
): Promise<void> {
  for (const { workspaceId, accountId, level, facts } of await seenBudgets(db, now)) {
    const before = states.get(workspaceId)?.get("call_budget") ?? UNSEEN;
    const { after, tell, isSettling } = stepBudget(before, level, now);
    if (!isSame(before, after))
      observation.changes.push({ subject: { workspaceId }, kind: "call_budget", state: after });
    if (isSettling) observation.settling.add(accountId);
    if (!tell) continue;
    const told = { ...facts, level, since: tell.since.toISOString(), times: tell.times };
    observation.alerts.push({ accountId, workspaceId, kind: tell.kind, facts: told });
  }
}

async function observeSchemaChanges(tx: TransactionSql, now: Date, observation: Observation): Promise<void> {
  for (const { baseId, accountId, reportedAt, firstAt, lastId, alerts } of await seenChanges(tx, now)) {
    const { isDue, isSettling } = due(firstAt, reportedAt, now);
    if (isSettling) observation.settling.add(accountId);
    if (!isDue) continue;
    for (const { kind, facts } of alerts) {
      const told = { ...facts, reason: "", since: firstAt.toISOString(), times: 1 };
      observation.alerts.push({ accountId, baseId, kind, facts: told });
    }
    await tx`
      update alert_states set cursor = ${lastId}, reported_at = ${now} where base_id = ${baseId} and kind = 'schema_changed'`;
  }
}

async function observeProposals(tx: TransactionSql, now: Date, observation: Observation): Promise<void> {
  for (const { baseId, accountId, reportedAt, firstAt, ids, facts } of await seenProposals(tx, now)) {
    const { isDue, isSettling } = due(firstAt, reportedAt, now);
    if (isSettling) observation.settling.add(accountId);
    if (!isDue) continue;
    const told = { ...facts, reason: "", since: firstAt.toISOString(), times: 1 };
    observation.alerts.push({ accountId, baseId, kind: "proposal_waiting", facts: told });
    await tx`update change_sets set announced_at = ${now} where id = any (${ids})`;
  }
}

/** @returns the new alerts' ids; leaves out alerts whose base or workspace was deleted meanwhile */
async function insertAlerts(tx: TransactionSql, alerts: NewAlert[], now: Date): Promise<string[]> {
  if (alerts.length === 0) return [];
  const rows = alerts.map(({ accountId, baseId = null, workspaceId = null, kind, facts }) => ({
    account_id: accountId,
    base_id: baseId,
    workspace_id: workspaceId,
    kind,
    facts,
  }));
  const inserted = await tx<{ id: string }[]>`
    insert into alerts (account_id, base_id, workspace_id, kind, at, facts)
    select r.account_id, r.base_id, r.workspace_id, r.kind, ${now}, r.facts
    from jsonb_to_recordset(${jsonParameter(rows)}::text::jsonb)
      as r (account_id text, base_id text, workspace_id text, kind text, facts jsonb)
    where exists (select from bases as b where b.id = r.base_id for key share)
      or exists (select from workspaces as w where w.id = r.workspace_id for key share)
    returning id`;
  return inserted.map(({ id }) => id);
}
