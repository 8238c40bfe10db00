/**
 * Change sets of SQL transactions. A transaction waits for its set: the proxy that has the client carries it out at once,
 * and stops at the first refusal, with which the transaction fails. Or it submits the set, which is then carried out as any
 * other.
 */
import type { Context, Db } from "../../context";
import { invalid } from "../../errors";
import { isId, newId } from "../../ids";
import { openError } from "./cells";
import { CHANGE_SET_CHANNEL, type ItemState, MOST_OPEN } from "./change-sets";
import { HELD_FOR, type HeldItem, type HeldSet, type SetHold } from "./claims";
import { type AwaitedOperation, insertItems, newItems } from "./new-items";
import type { OperationKind } from "./operations";

interface SqlSet {
  baseId: string;
  /** The role that writes. */
  sqlRole: string;
  applicationName: string;
  note: string;
  typecast: boolean;
  operations: AwaitedOperation[];
}

interface NewAwaitedSet extends SqlSet {
  /** So many operations are about to be sent. */
  sending: number;
}

/** Where the writes of a base go. */
export type WritesSource = Pick<HeldSet, "sourceBaseId" | "encryptedApiKey">;

/** A set before it is recorded. */
export interface UnrecordedSet {
  set: SetHold;
  items: HeldItem[];
  /** Records it, once. @returns undefined if the base's setting is off, or the base is being moved or deleted */
  record(): Promise<WritesSource | undefined>;
}

const isWritable = (db: Db) => db`sql_writes and state not in ('moving', 'deleting')`;

export function newAwaitedSet(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  asked: NewAwaitedSet,
): UnrecordedSet {
  const id = newId("change_set");
  const holder = crypto.randomUUID();
  const rows = newItems(secrets, asked.operations, asked.sending);
  return {
    set: { id, holder },
    items: rows.map(({ item }) => item),
    async record() {
      const [source] = await db<WritesSource[]>`
        with base as materialized (
          select id, source_base_id, encrypted_api_key from bases
          where id = ${asked.baseId} and ${isWritable(db)} for key share
        ), made as (
          insert into change_sets (id, base_id, note, typecast, state, decided_at, holder, held_until, is_awaited, sql_role,
            application_name)
          select ${id}, b.id, ${asked.note}, ${asked.typecast}, 'running', now(), ${holder}, now() + ${HELD_FOR}::interval,
            true, ${asked.sqlRole}, ${asked.applicationName}
          from base as b returning id
        ), items as (
          ${insertItems(db, db`made`, rows)}
        )
        select source_base_id as "sourceBaseId", encrypted_api_key as "encryptedApiKey" from base`;
      return source;
    },
  };
}

/**
 * Records a set that is carried out in the background, once: it may be there already.
 *
 * @param id of the set
 * @returns `off` if the base's setting is; `away` while the base is being moved or deleted; `full` if too many sets of it wait
 * @throws BasetideError `invalid_request` for an id that is none
 */
export async function createSubmittedSet(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  id: string,
  asked: SqlSet,
): Promise<"made" | "off" | "away" | "full"> {
  if (!isId("change_set", id)) throw invalid("The id of a change set is malformed");
  const rows = newItems(secrets, withoutOwnChanges(asked.operations), 0);
  const [found] = await db<{ is_made: boolean }[]>`
    with base as materialized (
      select id from bases where id = ${asked.baseId} and ${isWritable(db)} for key share
    ), made as (
      insert into change_sets (id, base_id, note, typecast, state, decided_at, sql_role, application_name)
      select ${id}, b.id, ${asked.note}, ${asked.typecast}, 'approved', now(), ${asked.sqlRole}, ${asked.applicationName}
      from base as b
      where (select count(*) from change_sets where base_id = b.id and ended_at is null and not is_awaited
        and state <> 'proposed') < ${MOST_OPEN}
      on conflict (id) do nothing
      returning id
    ), items as (
      ${insertItems(db, db`made`, rows)}
    )
    select exists (select from made) or exists (
        select from change_sets where id = ${id} and base_id = ${asked.baseId}) as is_made,
      pg_notify(${CHANGE_SET_CHANNEL}, ${id}) from base`;
  if (found) return found.is_made ? "made" : "full";
  const [isOn] = await db`select from bases where id = ${asked.baseId} and sql_writes`;
  return isOn ? "away" : "off";
}

/** What the set itself has changed of a record, its later operations do not expect: they are compared when they are sent. */
function withoutOwnChanges(operations: AwaitedOperation[]): AwaitedOperation[] {
  const changed = new Map<string | undefined, Set<string>>();
  return operations.map((operation) => {
    const { record, fields = {}, expected } = operation;
    const own = changed.get(record) ?? new Set();
    changed.set(record, own.union(new Set(Object.keys(fields))));
    if (!expected || own.size === 0) return operation;
    const left = Object.entries(expected).filter(([key]) => !own.has(key));
    return { ...operation, expected: Object.fromEntries(left) };
  });
}

/** The result of an operation of a set that has ended. */
export interface EndedItem {
  state: ItemState;
  recordId: string | null;
  error: string;
}

/**
 * Returns which of these sets of the base have ended, with the results of their operations, in their order; without any
 * for a set that is not there.
 */
export async function endedSets(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
  ids: string[],
): Promise<Map<string, EndedItem[]>> {
  if (ids.length === 0) return new Map();
  const sets = await db<{ id: string; ended: boolean }[]>`
    select id, ended_at is not null as ended from change_sets where base_id = ${baseId} and id = any (${ids})`;
  const open = new Set(sets.filter(({ ended }) => !ended).map(({ id }) => id));
  const ended = ids.filter((id) => !open.has(id));
  const known = sets.filter((set) => set.ended).map(({ id }) => id);
  const items =
    known.length === 0
      ? []
      : await db<
          { id: string; set: string; state: ItemState; recordId: string | null; error: string | null }[]
        >`
          select id, set_id as "set", state, record_id as "recordId", encrypted_error as error
          from change_items where set_id = any (${known}) order by set_id, position`;
  const bySet = Map.groupBy(items, ({ set }) => set);
  return new Map(
    ended.map((id) => [
      id,
      (bySet.get(id) ?? []).map(({ id: itemId, state, recordId, error }) => ({
        state,
        recordId,
        error: openError(secrets, error, itemId),
      })),
    ]),
  );
}

/** What became of one written row. */
export interface SqlWrite {
  set: string;
  /** In its transaction. */
  position: number;
  at: Date;
  role: string;
  applicationName: string;
  note: string;
  table: string;
  recordId: string | null;
  operation: OperationKind;
  state: ItemState;
  errorType: string;
  error: string;
}

/**
 * Lists the latest rows that were written by SQL, the newest first.
 *
 * @param role only those of this role
 * @param isUnknown only those of which it is not known whether the source has made them
 */
export async function listWrites(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
  { role, isUnknown = false, limit }: { role?: string | undefined; isUnknown?: boolean; limit: number },
): Promise<SqlWrite[]> {
  const unknown = db`i.state in ('sent', 'unknown')`;
  const rows = await db<(Omit<SqlWrite, "error"> & { itemId: string; error: string | null })[]>`
    select s.id as set, i.position, s.created_at as at, s.sql_role as role, s.application_name as "applicationName",
      s.note, i.table_ref as "table", i.record_id as "recordId", i.operation, i.state, i.error_type as "errorType",
      i.id as "itemId", i.encrypted_error as error
    from (
      select * from change_sets as c
      where base_id = ${baseId} and sql_role is not null ${role === undefined ? db`` : db`and sql_role = ${role}`}
        ${isUnknown ? db`and exists (select from change_items as i where i.set_id = c.id and ${unknown})` : db``}
      order by created_at desc, id limit ${limit}
    ) as s join change_items as i on i.set_id = s.id
    ${isUnknown ? db`where ${unknown}` : db``}
    order by s.created_at desc, s.id, i.position limit ${limit}`;
  return rows.map(({ itemId, error, ...row }) => ({ ...row, error: openError(secrets, error, itemId) }));
}
