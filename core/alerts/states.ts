/** Loads and saves observed and reported states; writes only rows that differ. */
import type { TransactionSql } from "postgres";
import { type Health, type KindState, UNSEEN } from "./rules";

/** By base or workspace, then by kind. */
export type States = Map<string, Map<string, KindState>>;

export interface StateChange {
  subject: { baseId: string } | { workspaceId: string };
  kind: string;
  state: KindState;
}

/** Loads all but the states of schemas, which are handled in SQL. */
export async function loadStates(tx: TransactionSql): Promise<States> {
  const rows = await tx<(KindState & { subject: string; kind: string })[]>`
    select coalesce(base_id, workspace_id) as subject, kind, state, since, told, reported_at as "reportedAt", times
    from alert_states where kind <> 'schema_changed'`;
  const states: States = new Map();
  for (const { subject, kind, ...state } of rows) {
    const kinds = states.get(subject) ?? new Map<string, KindState>();
    states.set(subject, kinds.set(kind, state));
  }
  return states;
}

export function healthIn(states: States, baseId: string): Health {
  const kinds = states.get(baseId);
  return {
    red: kinds?.get("red") ?? UNSEEN,
    needs_attention: kinds?.get("needs_attention") ?? UNSEEN,
    recovered: kinds?.get("recovered") ?? UNSEEN,
  };
}

/** Returns the states in `after` that differ from `before`. */
export function changedHealth(baseId: string, before: Health, after: Health): StateChange[] {
  return (["red", "needs_attention", "recovered"] as const)
    .filter((kind) => !isSame(before[kind], after[kind]))
    .map((kind) => ({ subject: { baseId }, kind, state: after[kind] }));
}

export function isSame(one: KindState, other: KindState): boolean {
  return (
    one.state === other.state &&
    one.told === other.told &&
    one.times === other.times &&
    one.since.getTime() === other.since.getTime() &&
    one.reportedAt?.getTime() === other.reportedAt?.getTime()
  );
}

/** Saves the states, except those of bases and workspaces that were deleted meanwhile. */
export async function saveStates(tx: TransactionSql, changes: StateChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map(({ subject, kind, state }) => ({
    base_id: "baseId" in subject ? subject.baseId : null,
    workspace_id: "workspaceId" in subject ? subject.workspaceId : null,
    kind,
    state: state.state,
    since: state.since.toISOString(),
    told: state.told,
    reported_at: state.reportedAt?.toISOString() ?? null,
    times: state.times,
  }));
  await tx`
    insert into alert_states (base_id, workspace_id, kind, state, since, told, reported_at, times)
    select r.* from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (base_id text, workspace_id text,
      kind text, state text, since timestamptz, told text, reported_at timestamptz, times integer)
    where exists (select from bases as b where b.id = r.base_id for key share)
      or exists (select from workspaces as w where w.id = r.workspace_id for key share)
    on conflict on constraint alert_states_key do update set state = excluded.state, since = excluded.since,
      told = excluded.told, reported_at = excluded.reported_at, times = excluded.times`;
}
