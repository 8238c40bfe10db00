/** The operations of a new change set, as items. */
import type { PendingQuery, Row, TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { newId } from "../../ids";
import { encryptCells, encryptError } from "./cells";
import type { HeldItem } from "./claims";
import type { CellValues, ChangeOperation } from "./operations";

/** An operation of a transaction. */
export interface AwaitedOperation extends ChangeOperation {
  /** The cells that it replaces, as SQL had them. */
  before?: CellValues | undefined;
  /** Why it is not made: it has no cells. */
  refused?: { errorType: string; error: string } | undefined;
}

/** @param sending so many operations are about to be sent */
export function newItems(secrets: Context["secrets"], operations: AwaitedOperation[], sending = 0) {
  return operations.map((operation, position) => {
    const id = newId("change_item");
    const encrypted = (cells: CellValues | undefined, column: "cells" | "expected" | "before") =>
      cells === undefined ? null : encryptCells(secrets, cells, column, id);
    return {
      item: {
        id,
        position,
        operation: operation.operation,
        table: operation.table,
        recordId: operation.record ?? null,
        cells: operation.fields,
        expected: operation.expected,
        before: operation.before,
        state: operation.refused ? "refused" : position < sending ? "sent" : "waiting",
        sentAgoMs: null,
      } satisfies HeldItem,
      cells: encrypted(operation.fields, "cells"),
      expected: encrypted(operation.expected, "expected"),
      before: encrypted(operation.before, "before"),
      errorType: operation.refused?.errorType ?? "",
      error: encryptError(secrets, operation.refused?.error ?? "", id),
    };
  });
}

/** Inserts the items of a set. @param made a relation with its id */
export function insertItems(
  db: Db | TransactionSql,
  made: PendingQuery<Row[]>,
  rows: ReturnType<typeof newItems>,
) {
  const column = <Value>(of: (row: (typeof rows)[number]) => Value) => rows.map(of);
  return db`
    insert into change_items (id, set_id, position, operation, table_ref, record_id, encrypted_cells,
      encrypted_expected, encrypted_before, state, error_type, encrypted_error, sent_at)
    select i.id, m.id, i.position, i.operation, i.table_ref, i.record_id, i.cells, i.expected, i.before, i.state,
      i.error_type, i.error, case i.state when 'sent' then clock_timestamp() end
    from ${made} as m, unnest(${column(({ item }) => item.id)}::text[], ${column(({ item }) => item.position)}::int[],
      ${column(({ item }) => item.operation)}::text[], ${column(({ item }) => item.table)}::text[],
      ${column(({ item }) => item.recordId)}::text[], ${column(({ cells }) => cells)}::text[],
      ${column(({ expected }) => expected)}::text[], ${column(({ before }) => before)}::text[],
      ${column(({ item }) => item.state)}::text[], ${column(({ errorType }) => errorType)}::text[],
      ${column(({ error }) => error)}::text[])
      as i (id, position, operation, table_ref, record_id, cells, expected, before, state, error_type, error)`;
}
