/**
 * Change sets: ordered changes of records that Basetide makes in the source with the base's own key. A proposal is
 * carried out when someone approves it; a set is carried out by a proxy (`apps/proxy/change-sets`).
 */
import type { PendingQuery, Row, TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { conflict, invalid } from "../../errors";
import { newId, rowById } from "../../ids";
import { checkedText } from "../../postgres";
import { recordChange } from "../audit";
import type { Base } from "../bases";
import { approvalByRules, type RuleApproval } from "./approval-rules";
import { encryptCells, openCells, openError } from "./cells";
import { insertItems, newItems } from "./new-items";
import { type CellValues, type ChangeOperation, checkOperations, type OperationKind } from "./operations";

/** Sent to proxies, with the id of the set, when there is one to carry out. */
export const CHANGE_SET_CHANNEL = "basetide_change_sets";

/** A proposal can be approved for this long unless it says otherwise, minutes. */
const PROPOSED_MINUTES = 7 * 24 * 60;
/** Sets of a base that wait or are carried out, at most. */
export const MOST_OPEN = 100;

/** The state `expired` is not stored: it follows from the expiry of a proposal. */
export const changeSetStates = [
  "proposed",
  "approved",
  "running",
  "applied",
  "partly",
  "failed",
  "rejected",
  "canceled",
  "expired",
] as const;
export type ChangeSetState = (typeof changeSetStates)[number];

/** `sent`: the source may have made it, and has not answered yet. `unknown`: whether it has cannot be found out. */
export const itemStates = ["waiting", "sent", "applied", "refused", "unknown", "not_applied"] as const;
export type ItemState = (typeof itemStates)[number];

export interface ChangeSet {
  id: string;
  baseId: string;
  createdBy: string | null;
  note: string;
  typecast: boolean;
  state: ChangeSetState;
  /** Id of the set whose changes it undoes. */
  undoes: string | null;
  /** Id of the agent that proposed it. */
  agentId: string | null;
  /** Somebody had to approve it. */
  isProposal: boolean;
  createdAt: Date;
  /** When a proposal can no longer be approved. */
  expiresAt: Date;
  decidedBy: string | null;
  decidedAt: Date | null;
  /** Why it was rejected; empty unless a reason was given. */
  reason: string;
  endedAt: Date | null;
  /** Why it cannot continue at the moment; empty if it can. */
  problem: string;
  /** Operations by state. */
  counts: Partial<Record<ItemState, number>>;
}

export interface ChangeItem {
  position: number;
  operation: OperationKind;
  table: string;
  /** Null for a create that has not been made. */
  recordId: string | null;
  fields: CellValues | null;
  /** Cells that the record must have when it is changed; null: any. */
  expected: CellValues | null;
  state: ItemState;
  /** The source's type of the error. */
  errorType: string;
  error: string;
}

interface NewChangeSet {
  operations: ChangeOperation[];
  note?: string | undefined;
  typecast?: boolean | undefined;
  /** Somebody must approve it. */
  isProposal?: boolean | undefined;
  undoes?: string | undefined;
  /** The agent that proposes it, and how many of its proposals may wait. Its rules may approve it. */
  agent?: { id: string; mostProposals: number } | undefined;
  /** How long a proposal can be approved. */
  expiresInMinutes?: number | undefined;
}

type SetContext = Pick<Context, "db" | "secrets" | "actor">;

/**
 * @throws BasetideError `invalid_request`; `conflict` if the base's setting is off, too many sets wait, or another set undoes
 *   the same one
 */
export async function createChangeSet(ctx: SetContext, base: Base, asked: NewChangeSet): Promise<ChangeSet> {
  requireOn(base);
  const { agent, isProposal = false } = asked;
  checkOperations(asked.operations, isProposal);
  const note = checkedText(asked.note ?? "", "The note");
  const id = newId("change_set");
  const items = newItems(ctx.secrets, asked.operations);
  const by = ctx.actor?.name ?? null;
  await ctx.db.begin(async (tx) => {
    if (asked.undoes !== undefined) await requireNotUndone(tx, asked.undoes);
    const rule = agent && (await approvalByAgent(tx, agent, base.id, asked.operations));
    const decidedBy = rule ? `a rule of ${rule.createdBy.join(", ")}` : isProposal ? null : by;
    const state = decidedBy === null && isProposal ? "proposed" : "approved";
    const [made] = await tx`
      insert into change_sets (
        id, base_id, created_by, note, typecast, state, undoes, agent_id, is_proposal, by_rule, expires_at,
        decided_by, decided_at)
      select ${id}, b.id, ${by}, ${note}, ${asked.typecast ?? false}, ${state}, ${asked.undoes ?? null},
        ${agent?.id ?? null}, ${isProposal}, ${rule !== undefined},
        now() + ${asked.expiresInMinutes ?? PROPOSED_MINUTES}::int * interval '1 minute',
        ${decidedBy}, ${state === "proposed" ? null : tx`now()`}
      from (select id from bases where id = ${base.id} and state <> 'deleting' for key share) as b
      where (select count(*) from change_sets where base_id = b.id and ended_at is null
        and (state <> 'proposed' or expires_at > now())) < ${MOST_OPEN}
      returning id`;
    if (!made) throw conflict(`At most ${MOST_OPEN} change sets of a base wait: approve or reject some`);
    await insertItems(tx, tx`(select ${id}::text as id)`, items);
    const details = { operations: items.length, undoes: asked.undoes, proposal: isProposal };
    const change = { accountId: base.accountId, action: "change_set.created", subject: id, details } as const;
    await recordChange(tx, ctx.actor, change);
    if (rule) {
      const approved = { rules: rule.ids.join(", "), allowed_by: rule.createdBy.join(", ") };
      await recordChange(tx, undefined, { ...change, action: "change_set.approved", details: approved });
    }
    if (state === "approved") await tx`select pg_notify(${CHANGE_SET_CHANNEL}, ${id})`;
  });
  return getChangeSet(ctx.db, base.id, id);
}

/**
 * Refuses a proposal of an agent that could not be stored, before its records are read: that costs calls of the base's budget.
 *
 * @throws BasetideError `conflict` as `createChangeSet`
 */
export async function requireRoom(
  db: Context["db"],
  base: Base,
  agent: { id: string; mostProposals: number },
  operations: ChangeOperation[],
): Promise<void> {
  requireOn(base);
  await db.begin((tx) => approvalByAgent(tx, agent, base.id, operations));
}

/**
 * Returns the rules that approve a proposal of the agent; without one, there must be room for it. Concurrent proposals of
 * an agent count one after the other.
 *
 * @throws BasetideError `conflict`
 */
async function approvalByAgent(
  tx: TransactionSql,
  { id, mostProposals }: { id: string; mostProposals: number },
  baseId: string,
  operations: ChangeOperation[],
): Promise<RuleApproval | undefined> {
  await tx`select from agents where id = ${id} for no key update`;
  const rule = await approvalByRules(tx, { agentId: id, baseId }, operations);
  if (rule) return rule;
  const [open] = await tx<{ count: number }[]>`
    select count(*)::int as count from change_sets
    where agent_id = ${id} and state = 'proposed' and expires_at > now()`;
  if (open!.count < mostProposals) return undefined;
  throw conflict(
    `${mostProposals} proposals of this agent wait for a decision. Ask a person to approve or reject some`,
  );
}

/** A second undo would create deleted records twice. One that has changed nothing does not count. @throws BasetideError `conflict` */
async function requireNotUndone(tx: TransactionSql, id: string): Promise<void> {
  await tx`select from change_sets where id = ${id} for no key update`;
  const [other] = await tx<{ id: string }[]>`
    select s.id from change_sets as s
    where s.undoes = ${id} and (s.ended_at is null or exists (
      select from change_items as i where i.set_id = s.id and i.state in ('applied', 'unknown')))`;
  if (other) throw conflict(`The change set ${other.id} undoes this one already`);
}

/** @throws BasetideError `conflict` */
function requireOn({ settings }: Pick<Base, "settings">): void {
  if (settings.changeSets) return;
  const message = "Change sets are off for this base. Turn on its setting `change_sets` first";
  throw conflict(message);
}

/** The newest first, without those of SQL transactions. */
export function listChangeSets(db: Db, baseId: string, limit: number): Promise<ChangeSet[]> {
  return selectSets(db, db`s.base_id = ${baseId} and s.sql_role is null`, limit);
}

/** @throws BasetideError `not_found` */
export async function getChangeSet(db: Db, baseId: string, id: string): Promise<ChangeSet> {
  return setById(db, id, db`s.base_id = ${baseId}`, `This base has no change set ${id}`);
}

/** The proposals for the account's bases: first those that wait, then the newest. */
export function listProposals(
  db: Db,
  accountId: string,
  { state, limit }: { state?: ChangeSetState | undefined; limit: number },
): Promise<ChangeSet[]> {
  const ofState =
    state === undefined
      ? db`true`
      : db`${state} = case when s.state = 'proposed' and s.expires_at <= now() then 'expired' else s.state end`;
  return selectSets(
    db,
    db`s.is_proposal and s.base_id in (select id from bases where account_id = ${accountId}) and ${ofState}`,
    limit,
    db`(s.state = 'proposed' and s.expires_at > now()) desc,`,
  );
}

/** @throws BasetideError `not_found`, also if it is of another account */
export async function getProposal(db: Db, accountId: string, id: string): Promise<ChangeSet> {
  const isOwn = db`s.is_proposal and s.base_id in (select id from bases where account_id = ${accountId})`;
  return setById(db, id, isOwn, `There is no proposal ${id}`);
}

/** Returns a proposal of an agent. @throws BasetideError `not_found`, also if it is another one's */
export async function proposalOf(db: Db, agentId: string, id: string): Promise<ChangeSet> {
  return setById(db, id, db`s.agent_id = ${agentId}`, `You have made no proposal ${id}`);
}

function setById(db: Db, id: string, isOwn: PendingQuery<Row[]>, message: string): Promise<ChangeSet> {
  return rowById("change_set", id, () => selectSets(db, db`s.id = ${id} and ${isOwn}`, 1), message);
}

/** Lists up to `limit` operations of the set in their order, from `from` on. */
export async function listChangeItems(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  setId: string,
  { from, limit }: { from: number; limit: number },
): Promise<ChangeItem[]> {
  const rows = await db<
    (Omit<ChangeItem, "fields" | "expected" | "error"> & {
      id: string;
      cells: string | null;
      expected: string | null;
      error: string | null;
    })[]
  >`
    select id, position, operation, table_ref as "table", record_id as "recordId", encrypted_cells as cells,
      encrypted_expected as expected, state, error_type as "errorType",
      encrypted_error as error
    from change_items where set_id = ${setId} and position >= ${from} order by position limit ${limit}`;
  return rows.map(({ id, cells, expected, error, ...row }) => ({
    ...row,
    fields: openCells(secrets, cells, "cells", id) ?? null,
    expected: openCells(secrets, expected, "expected", id) ?? null,
    error: openError(secrets, error, id),
  }));
}

export const decisions = ["approve", "reject", "cancel"] as const;
export type Decision = (typeof decisions)[number];

interface DecisionOptions {
  only?: readonly number[] | undefined;
  expected?: ReadonlyMap<number, CellValues> | undefined;
  reason?: string | undefined;
}

const decided = { approve: "approved", reject: "rejected", cancel: "canceled" } as const;

/**
 * Approves or rejects a proposal, or cancels a set: what was not sent is not applied.
 *
 * @param options.only of an approval: the positions of the operations that it is for
 * @param options.expected of an approval: by position, what records that changed since must have instead
 * @param options.reason of a rejection, for the author
 * @throws BasetideError `not_found`; `conflict` if its state does not allow it
 */
export async function decideChangeSet(
  ctx: SetContext,
  base: Base,
  id: string,
  decision: Decision,
  { only, expected, reason = "" }: DecisionOptions = {},
): Promise<ChangeSet> {
  await getChangeSet(ctx.db, base.id, id);
  const told = checkedText(reason, "The reason");
  if (only?.length === 0) throw invalid("Choose at least one operation, or reject the proposal");
  if (decision === "approve") requireOn(base);
  const state = decided[decision];
  await ctx.db.begin(async (tx) => {
    const [set] = await tx<{ state: ChangeSetState; isExpired: boolean }[]>`
      select state, expires_at <= now() as "isExpired"
      from change_sets where id = ${id} for update`;
    const isProposal = set?.state === "proposed";
    if (!set || (decision === "cancel" ? !isUnderWay(set.state) : !isProposal || set.isExpired))
      throw conflict(`This change set is ${isProposal && set.isExpired ? "expired" : set?.state}`);
    if (state !== "approved" || only)
      await tx`
        update change_items set state = 'not_applied'
        where set_id = ${id} and state = 'waiting' and position <> all (${[...((state === "approved" && only) || [])]}::int[])`;
    for (const [position, cells] of (state === "approved" && expected) || []) {
      const [item] = await tx<{ id: string }[]>`
        select id from change_items where set_id = ${id} and position = ${position}`;
      if (item)
        await tx`
          update change_items set encrypted_expected = ${encryptCells(ctx.secrets, cells, "expected", item.id)}
          where id = ${item.id}`;
    }
    // What was sent before it was canceled still gets its result, and then the set ends.
    await tx`
      update change_sets set state = ${state}, decided_by = ${ctx.actor?.name ?? null}, decided_at = now(), reason = ${told},
        rests_until = null, ended_at = case when ${state} <> 'approved' and not exists (
          select from change_items where set_id = ${id} and state = 'sent') then now() end
      where id = ${id}`;
    const change = { accountId: base.accountId, action: `change_set.${state}`, subject: id } as const;
    await recordChange(tx, ctx.actor, change);
    await tx`select pg_notify(${CHANGE_SET_CHANNEL}, ${id})`;
  });
  return getChangeSet(ctx.db, base.id, id);
}

const isUnderWay = (state: ChangeSetState) => state === "approved" || state === "running";

function selectSets(
  db: Db,
  where: ReturnType<Db>,
  limit: number,
  first: ReturnType<Db> = db``,
): Promise<ChangeSet[]> {
  return db<ChangeSet[]>`
    select s.id, s.base_id as "baseId", s.created_by as "createdBy", s.note, s.typecast, s.undoes,
      case when s.state = 'proposed' and s.expires_at <= now() then 'expired' else s.state end as state,
      s.created_at as "createdAt", s.expires_at as "expiresAt", s.agent_id as "agentId",
      s.is_proposal as "isProposal", s.reason, s.decided_by as "decidedBy",
      s.decided_at as "decidedAt", s.ended_at as "endedAt", s.problem,
      (select coalesce(jsonb_object_agg(c.state, c.count), '{}') from (
        select i.state, count(*) from change_items as i where i.set_id = s.id group by i.state) as c) as counts
    from change_sets as s where ${where} order by ${first} s.created_at desc, s.id limit ${limit}`;
}
