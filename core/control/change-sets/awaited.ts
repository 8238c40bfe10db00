/**
 * Change sets that a SQL transaction waits for. The proxy that has the client carries them out at once, and stops at the
 * first refusal: the transaction fails then.
 */
import type { Context } from "../../context";
import { newId } from "../../ids";
import { encryptCells, openError } from "./cells";
import type { ItemState } from "./change-sets";
import { HELD_FOR, type HeldItem, type HeldSet } from "./claims";
import type { CellValues, ChangeOperation, OperationKind } from "./operations";

/** An operation of a transaction. */
export interface AwaitedOperation extends ChangeOperation {
  /** The cells that it replaces, as SQL had them. */
  before?: CellValues | undefined;
}

interface NewAwaitedSet {
  baseId: string;
  /** The role that writes. */
  sqlRole: string;
  applicationName: string;
  note: string;
  typecast: boolean;
  operations: AwaitedOperation[];
  /** So many operations are about to be sent. */
  sending: number;
}

/** @returns undefined if the base's setting is off, or the base is being moved or deleted */
export async function createAwaitedSet(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  asked: NewAwaitedSet,
): Promise<{ set: HeldSet; items: HeldItem[] } | undefined> {
  const id = newId("change_set");
  const holder = crypto.randomUUID();
  const rows = asked.operations.map((operation, position) => {
    const itemId = newId("change_item");
    const encrypted = (cells: CellValues | undefined, column: "cells" | "expected" | "before") =>
      cells === undefined ? null : encryptCells(secrets, cells, column, itemId);
    return {
      item: {
        id: itemId,
        position,
        operation: operation.operation,
        table: operation.table,
        recordId: operation.record ?? null,
        cells: operation.fields,
        expected: operation.expected,
        state: position < asked.sending ? "sent" : "waiting",
        sentAgoMs: null,
      } satisfies HeldItem,
      cells: encrypted(operation.fields, "cells"),
      expected: encrypted(operation.expected, "expected"),
      before: encrypted(operation.before, "before"),
    };
  });
  const column = <Value>(of: (row: (typeof rows)[number]) => Value) => rows.map(of);
  const [found] = await db<Pick<HeldSet, "platform" | "sourceBaseId" | "encryptedApiKey">[]>`
    with base as materialized (
      select id, platform, source_base_id, encrypted_api_key from bases
      where id = ${asked.baseId} and sql_writes and state not in ('moving', 'deleting') for key share
    ), made as (
      insert into change_sets (id, base_id, note, typecast, state, decided_at, holder, held_until, is_awaited, sql_role,
        application_name)
      select ${id}, b.id, ${asked.note}, ${asked.typecast}, 'running', now(), ${holder}, now() + ${HELD_FOR}::interval,
        true, ${asked.sqlRole}, ${asked.applicationName}
      from base as b returning id
    ), items as (
      insert into change_items (id, set_id, position, operation, table_ref, record_id, encrypted_cells,
        encrypted_expected, encrypted_before, state, sent_at)
      select i.id, m.id, i.position, i.operation, i.table_ref, i.record_id, i.cells, i.expected, i.before, i.state,
        case i.state when 'sent' then clock_timestamp() end
      from made as m, unnest(${column(({ item }) => item.id)}::text[], ${column(({ item }) => item.position)}::int[],
        ${column(({ item }) => item.operation)}::text[], ${column(({ item }) => item.table)}::text[],
        ${column(({ item }) => item.recordId)}::text[], ${column(({ cells }) => cells)}::text[],
        ${column(({ expected }) => expected)}::text[], ${column(({ before }) => before)}::text[],
        ${column(({ item }) => item.state)}::text[])
        as i (id, position, operation, table_ref, record_id, cells, expected, before, state)
    )
    select platform, source_base_id as "sourceBaseId", encrypted_api_key as "encryptedApiKey" from base`;
  if (!found) return undefined;
  const set = {
    id,
    baseId: asked.baseId,
    ...found,
    typecast: asked.typecast,
    isAwaited: true,
    holder,
    decidedAgoMs: 0,
  };
  return { set, items: rows.map(({ item }) => item) };
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
