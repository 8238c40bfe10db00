/**
 * Workspaces, by which the source counts calls. A workspace's plan caps the monthly calls of all its bases; a part
 * of them is reserved for clients.
 */
import type { TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { BasetideError, conflict, invalid } from "../../errors";
import { newId, rowById } from "../../ids";
import { checkedName, isUniqueViolation } from "../../postgres";
import { platformFacts, type SourcePlan } from "../../source";
import type { AuditAction } from "../audit";
import { recordChange } from "../audit";

/** The plans that the sources sell, in display order. */
export const sourcePlans: readonly SourcePlan[] = platformFacts.flatMap(({ plans }) => plans);
/** The id of one of `sourcePlans`, or `custom`, for which the customer states the calls. */
export type Plan = string;
export const plans: readonly Plan[] = [...sourcePlans.map(({ id }) => id), "custom"];

/**
 * Calls a month of a plan other than `custom`; null: no cap.
 *
 * @throws BasetideError `invalid_request` if it does not exist
 */
export function callsOfPlan(plan: Plan): number | null {
  const found = sourcePlans.find(({ id }) => id === plan);
  if (found) return found.callsPerMonth;
  throw invalid(`There is no plan "${plan}". Plans: ${plans.join(", ")}`);
}

/** The default share of the calls that is reserved for clients. */
const DEFAULT_RESERVE = 0.2;
/** The largest value of the column. */
const MOST_CALLS = 2_000_000_000;

export interface Workspace {
  id: string;
  accountId: string;
  name: string;
  plan: Plan;
  /** Null: no cap. */
  callsPerMonth: number | null;
  /** Calls of the month that sync leaves to clients; 0 without a cap. */
  reserve: number;
  /** In the order in which they were connected. */
  baseIds: string[];
  createdAt: Date;
}

/** The context of changes to workspaces. */
type ChangeContext = Pick<Context, "db" | "actor">;
type WakeContext = Pick<Context, "db"> & { queue: { requestSync(baseId: string): Promise<void> } };

export interface NewWorkspace {
  name: string;
  plan: Plan;
  /** With `custom`: the calls, or null for no cap. Other plans determine it. */
  callsPerMonth?: number | null | undefined;
  /** Defaults to a fifth of the calls. */
  reserve?: number | undefined;
}

/**
 * @throws BasetideError `already_exists` if the account has the name already, `invalid_request` for invalid numbers
 */
export async function createWorkspace(
  ctx: ChangeContext,
  accountId: string,
  workspace: NewWorkspace,
): Promise<Workspace> {
  const id = newId("workspace");
  const facts = checked(workspace);
  await changing(ctx, "workspace.created", { id, accountId, facts }, async (tx) => {
    await tx`
      insert into workspaces (id, account_id, name, plan, calls_per_month, reserve)
      values (${id}, ${accountId}, ${facts.name}, ${facts.plan}, ${facts.callsPerMonth}, ${facts.reserve})`;
  });
  return getWorkspace(ctx.db, id);
}

/** @throws BasetideError `not_found`, also if it does not belong to a given `accountId` */
export async function getWorkspace(db: Db, id: string, accountId?: string): Promise<Workspace> {
  const own = accountId === undefined ? db`` : db`and w.account_id = ${accountId}`;
  const find = () => selectWorkspaces(db, db`w.id = ${id} ${own}`);
  return rowById("workspace", id, find, `There is no workspace ${id}`);
}

/** In order of creation. */
export async function listWorkspaces(db: Db, accountId: string): Promise<Workspace[]> {
  return selectWorkspaces(db, db`w.account_id = ${accountId}`);
}

/**
 * Changes the given properties. A new plan sets its calls, and a reserve of a fifth unless one is given. The bases
 * follow within a quarter of a minute; those that pause because of the old budget check the new one at once.
 *
 * @throws BasetideError as `createWorkspace`
 */
export async function updateWorkspace(
  ctx: ChangeContext & WakeContext,
  workspace: Workspace,
  changes: Partial<NewWorkspace>,
): Promise<Workspace> {
  const isOther = changes.plan !== undefined && changes.plan !== workspace.plan;
  const hasOtherCalls = isOther || changes.callsPerMonth !== undefined;
  const facts = checked({
    name: changes.name ?? workspace.name,
    plan: changes.plan ?? workspace.plan,
    callsPerMonth: hasOtherCalls ? changes.callsPerMonth : workspace.callsPerMonth,
    reserve: changes.reserve ?? (hasOtherCalls ? undefined : workspace.reserve),
  });
  const { id, accountId } = workspace;
  await changing(ctx, "workspace.changed", { id, accountId, facts }, async (tx) => {
    await tx`
      update workspaces set name = ${facts.name}, plan = ${facts.plan}, calls_per_month = ${facts.callsPerMonth},
        reserve = ${facts.reserve}
      where id = ${id}`;
  });
  const isSame = (["plan", "callsPerMonth", "reserve"] as const).every(
    (fact) => facts[fact] === workspace[fact],
  );
  if (!isSame) await endRest(ctx, workspace);
  return getWorkspace(ctx.db, id);
}

/** @throws BasetideError `conflict` while it has bases, which would continue without a cap */
export async function deleteWorkspace(ctx: ChangeContext, { id, name, accountId }: Workspace): Promise<void> {
  await getWorkspace(ctx.db, id, accountId);
  await ctx.db.begin(async (tx) => {
    const [deleted] = await tx`
      delete from workspaces as w
      where id = ${id} and not exists (select from bases where workspace_id = w.id) returning id`;
    if (!deleted) {
      const message = `The workspace "${name}" has bases, which would have no cap without it. Move them to another workspace first.`;
      throw conflict(message);
    }
    await tx`delete from quota_calls where key = ${leftKey(id)}`;
    await tx`delete from quota_kinds where key = ${leftKey(id)}`;
    await recordChange(tx, ctx.actor, {
      accountId,
      action: "workspace.deleted",
      subject: id,
      details: { name },
    });
  });
}

/** The ledger's key for the calls of deleted bases of the workspace. */
export function leftKey(workspaceId: string): string {
  return `left:${workspaceId}`;
}

/** Resumes bases that pause, or are slowed down, because of a previous budget. */
async function endRest({ db, queue }: WakeContext, { id: workspaceId, accountId }: Workspace): Promise<void> {
  const woken = await db<{ id: string; key: string; is_woken: boolean }[]>`
    update bases set rests_until = null
    where workspace_id = ${workspaceId}
    returning id, platform || ':' || source_base_id as key, state not in ('paused', 'deleting') as is_woken`;
  for (const { id, key, is_woken } of woken) {
    await db`select quota_unthrottle(${key}, ${accountId})`;
    // The queue's reconciler finds those that are not queued now.
    if (is_woken) await queue.requestSync(id).catch(() => {});
  }
}

function checked(workspace: NewWorkspace) {
  const { plan } = workspace;
  const name = checkedName(workspace.name, "A workspace");
  const callsPerMonth = plan === "custom" ? (workspace.callsPerMonth ?? null) : callsOfPlan(plan);
  if (workspace.callsPerMonth !== undefined && workspace.callsPerMonth !== callsPerMonth) {
    const own = callsPerMonth === null ? "no cap" : `${callsPerMonth} calls a month`;
    throw invalid(`The plan "${plan}" has ${own}. For another number, use "custom"`);
  }
  if (callsPerMonth !== null && !isCount(callsPerMonth, 1)) {
    throw invalid("The number of calls a month must be a whole number of at least 1");
  }
  const reserve = workspace.reserve ?? defaultReserve(callsPerMonth);
  if (!isCount(reserve, 0) || reserve > (callsPerMonth ?? 0)) {
    const most = callsPerMonth === null ? "0 because there is no cap" : `at most ${callsPerMonth}`;
    throw invalid(`The reserve for clients must be a whole number, ${most}`);
  }
  return { name, plan, callsPerMonth, reserve };
}

/** Returns how many of a workspace's calls are reserved for clients, unless the user sets another number. */
export function defaultReserve(callsPerMonth: number | null): number {
  return Math.floor((callsPerMonth ?? 0) * DEFAULT_RESERVE);
}

function isCount(value: number, least: number): boolean {
  return Number.isInteger(value) && value >= least && value <= MOST_CALLS;
}

/** Makes a change and records it in one transaction. @throws BasetideError `already_exists` */
async function changing(
  { db, actor }: ChangeContext,
  action: AuditAction,
  { id, accountId, facts }: { id: string; accountId: string; facts: ReturnType<typeof checked> },
  change: (tx: TransactionSql) => Promise<void>,
): Promise<void> {
  const { name, plan, callsPerMonth, reserve } = facts;
  const details = { name, plan, calls_per_month: callsPerMonth, reserve };
  try {
    await db.begin(async (tx) => {
      await change(tx);
      await recordChange(tx, actor, { accountId, action, subject: id, details });
    });
  } catch (error) {
    if (!isUniqueViolation(error, "workspaces_name_key")) throw error;
    throw new BasetideError("already_exists", `A workspace named "${name}" already exists`);
  }
}

async function selectWorkspaces(db: Db, where: ReturnType<Db>): Promise<Workspace[]> {
  return db<Workspace[]>`
    select w.id, w.account_id as "accountId", w.name, w.plan, w.calls_per_month as "callsPerMonth", w.reserve,
      w.created_at as "createdAt",
      array(select b.id from bases as b where b.workspace_id = w.id order by b.created_at, b.id) as "baseIds"
    from workspaces as w where ${where} order by w.created_at, w.id`;
}
