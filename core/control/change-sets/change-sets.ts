/**
 * Change sets: ordered changes of records that Basetide makes in the source with the base's own key. A proposal is
 * carried out when someone approves it; a set is carried out by a proxy (`apps/proxy/change-sets`).
 */
import type { Context, Db } from "../../context";
import { BasetideError } from "../../errors";
import { isId, newId } from "../../ids";
import { cleanText } from "../../postgres";
import { recordChange } from "../audit";
import type { Base } from "../bases";
import { type CellColumn, encryptCells, openCells, openError } from "./cells";
import { type CellValues, type ChangeOperation, checkOperations, type OperationKind } from "./operations";

/** Sent to proxies, with the id of the set, when there is one to carry out. */
export const CHANGE_SET_CHANNEL = "basetide_change_sets";

const MAX_NOTE_LENGTH = 1000;
/** A proposal can be approved for this long. */
const PROPOSED_FOR = "7 days";
/** Sets of a base that wait or are carried out, at most. */
export const MOST_OPEN = 100;

/** The state `expired` is not stored: it follows from the age of a proposal. */
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
  createdAt: Date;
  /** When a proposal can no longer be approved. */
  expiresAt: Date;
  decidedBy: string | null;
  decidedAt: Date | null;
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
}

type SetContext = Pick<Context, "db" | "secrets" | "actor">;

/** @throws BasetideError `invalid_request`, `conflict` if the base's setting is off, or too many sets wait */
export async function createChangeSet(ctx: SetContext, base: Base, asked: NewChangeSet): Promise<ChangeSet> {
  requireOn(base);
  checkOperations(asked.operations);
  const note = cleanText(asked.note ?? "").trim();
  if (note.length > MAX_NOTE_LENGTH)
    throw new BasetideError("invalid_request", `The note has more than ${MAX_NOTE_LENGTH} characters`);
  const id = newId("change_set");
  const items = asked.operations.map((operation, position) => toRow(ctx, operation, position));
  const column = <Key extends keyof (typeof items)[number]>(key: Key) => items.map((item) => item[key]);
  const by = ctx.actor?.name ?? null;
  const state = asked.isProposal ? "proposed" : "approved";
  await ctx.db.begin(async (tx) => {
    const [made] = await tx`
      insert into change_sets (id, base_id, created_by, note, typecast, state, undoes, decided_by, decided_at)
      select ${id}, b.id, ${by}, ${note}, ${asked.typecast ?? false}, ${state}, ${asked.undoes ?? null},
        ${asked.isProposal ? null : by}, ${asked.isProposal ? null : tx`now()`}
      from (select id from bases where id = ${base.id} and state <> 'deleting' for key share) as b
      where (select count(*) from change_sets where base_id = b.id and ended_at is null
        and (state <> 'proposed' or created_at > now() - ${PROPOSED_FOR}::interval)) < ${MOST_OPEN}
      returning id`;
    if (!made)
      throw new BasetideError(
        "conflict",
        `At most ${MOST_OPEN} change sets of a base wait: approve or reject some`,
      );
    await tx`
      insert into change_items (id, set_id, position, operation, table_ref, record_id, encrypted_cells, encrypted_expected)
      select i.id, ${id}, i.position, i.operation, i.table_ref, i.record_id, i.cells, i.expected
      from unnest(${column("id")}::text[], ${column("position")}::int[], ${column("operation")}::text[],
        ${column("table")}::text[], ${column("record")}::text[], ${column("cells")}::text[],
        ${column("expected")}::text[]) as i (id, position, operation, table_ref, record_id, cells, expected)`;
    const details = { operations: items.length, undoes: asked.undoes, proposal: asked.isProposal ?? false };
    const change = { accountId: base.accountId, action: "change_set.created", subject: id, details } as const;
    await recordChange(tx, ctx.actor, change);
    if (!asked.isProposal) await tx`select pg_notify(${CHANGE_SET_CHANNEL}, ${id})`;
  });
  return getChangeSet(ctx.db, base.id, id);
}

/** @throws BasetideError `conflict` */
function requireOn({ settings }: Pick<Base, "settings">): void {
  if (settings.changeSets) return;
  const message = "Change sets are off for this base. Turn on its setting `change_sets` first";
  throw new BasetideError("conflict", message);
}

function toRow({ secrets }: SetContext, operation: ChangeOperation, position: number) {
  const id = newId("change_item");
  const encrypted = (cells: CellValues | undefined, column: CellColumn) =>
    cells === undefined ? null : encryptCells(secrets, cells, column, id);
  return {
    id,
    position,
    operation: operation.operation,
    table: operation.table,
    record: operation.record ?? null,
    cells: encrypted(operation.fields, "cells"),
    expected: encrypted(operation.expected, "expected"),
  };
}

/** The newest first, without those of SQL transactions. */
export function listChangeSets(db: Db, baseId: string, limit: number): Promise<ChangeSet[]> {
  return selectSets(db, db`s.base_id = ${baseId} and s.sql_role is null`, limit);
}

/** @throws BasetideError `not_found` */
export async function getChangeSet(db: Db, baseId: string, id: string): Promise<ChangeSet> {
  const [set] = isId("change_set", id)
    ? await selectSets(db, db`s.base_id = ${baseId} and s.id = ${id}`, 1)
    : [];
  if (set) return set;
  throw new BasetideError("not_found", `This base has no change set ${id}`);
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

const decided = { approve: "approved", reject: "rejected", cancel: "canceled" } as const;

/**
 * Approves or rejects a proposal, or cancels a set: what was not sent is not applied.
 *
 * @throws BasetideError `not_found`; `conflict` if its state does not allow it
 */
export async function decideChangeSet(
  ctx: SetContext,
  base: Base,
  id: string,
  decision: Decision,
): Promise<ChangeSet> {
  await getChangeSet(ctx.db, base.id, id);
  if (decision === "approve") requireOn(base);
  const state = decided[decision];
  await ctx.db.begin(async (tx) => {
    const [set] = await tx<{ state: ChangeSetState; isExpired: boolean }[]>`
      select state, created_at <= now() - ${PROPOSED_FOR}::interval as "isExpired"
      from change_sets where id = ${id} for update`;
    const isProposal = set?.state === "proposed";
    if (!set || (decision === "cancel" ? !isUnderWay(set.state) : !isProposal || set.isExpired))
      throw new BasetideError(
        "conflict",
        `This change set is ${isProposal && set.isExpired ? "expired" : set?.state}`,
      );
    if (state !== "approved")
      await tx`update change_items set state = 'not_applied' where set_id = ${id} and state = 'waiting'`;
    // What was sent before it was canceled still gets its result, and then the set ends.
    await tx`
      update change_sets set state = ${state}, decided_by = ${ctx.actor?.name ?? null}, decided_at = now(),
        ended_at = case when ${state} <> 'approved' and not exists (
          select from change_items where set_id = ${id} and state = 'sent') then now() end
      where id = ${id}`;
    const change = { accountId: base.accountId, action: `change_set.${state}`, subject: id } as const;
    await recordChange(tx, ctx.actor, change);
    await tx`select pg_notify(${CHANGE_SET_CHANNEL}, ${id})`;
  });
  return getChangeSet(ctx.db, base.id, id);
}

const isUnderWay = (state: ChangeSetState) => state === "approved" || state === "running";

function selectSets(db: Db, where: ReturnType<Db>, limit: number): Promise<ChangeSet[]> {
  const expiry = db`s.created_at + ${PROPOSED_FOR}::interval`;
  return db<ChangeSet[]>`
    select s.id, s.base_id as "baseId", s.created_by as "createdBy", s.note, s.typecast, s.undoes,
      case when s.state = 'proposed' and ${expiry} <= now() then 'expired' else s.state end as state,
      s.created_at as "createdAt", ${expiry} as "expiresAt", s.decided_by as "decidedBy",
      s.decided_at as "decidedAt", s.ended_at as "endedAt", s.problem,
      (select coalesce(jsonb_object_agg(c.state, c.count), '{}') from (
        select i.state, count(*) from change_items as i where i.set_id = s.id group by i.state) as c) as counts
    from change_sets as s where ${where} order by s.created_at desc, s.id limit ${limit}`;
}
