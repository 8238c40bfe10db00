/**
 * Creates, updates, upserts and deletes records.
 *
 * W1. A request is applied completely or not at all: with one invalid record, nothing is created, changed or numbered.
 */
import { isAtLeast, permissionLevel } from "./auth";
import { type WriteContext, writtenCells } from "./cells";
import {
  apiError,
  invalidRequest,
  notPermitted,
  recordNotFound,
  rowDoesNotExist,
  unknownField,
} from "./errors";
import {
  type Cells,
  findField,
  isComputed,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
} from "./model";
import { isSandboxId } from "./random";
import { recordJson, shapeOf } from "./record";
import { type ApiAnswer, type ApiRequest, booleanOf, jsonBody, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";
import type { Transaction } from "./transaction";
import { mergeOptions, upsertTarget } from "./upsert";

/** Records in one create, update, upsert or delete. */
const MAX_RECORDS = 10;

const UPDATE_RECORDS_MESSAGE =
  'You must provide an array of up to 10 record objects, each with an "id" ID field and a "fields" object for cell ' +
  "values.";

export function createRecords(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  const body = jsonBody(request);
  const many = body.records;
  if (many === undefined && !isObject(body.fields)) throw missingFields();
  const items = many === undefined ? [{ fields: body.fields }] : many;
  if (
    !Array.isArray(items) ||
    items.length === 0 ||
    !items.every((item) => isObject(item) && isObject(item.fields))
  )
    throw missingFields();
  if (items.length > MAX_RECORDS)
    throw apiError(
      422,
      "INVALID_RECORDS",
      `A maximum of 10 records can be created per request but you have provided ${items.length}.`,
    );
  const rows = write(sandbox, base, request, body, (context) =>
    items.map((item: { fields: Record<string, unknown> }) => createRow(context, table, item.fields)),
  );
  return recordsAnswer(sandbox, base, table, body, rows, many !== undefined);
}

/** PATCH changes the given cells; PUT also clears every other writable cell. */
export function updateRecord(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  request: ApiRequest,
): ApiAnswer {
  const body = jsonBody(request);
  const fields = body.fields;
  if (!isObject(fields)) throw missingFields();
  const rows = write(sandbox, base, request, body, (context) => [
    updateRow(context, table, row, fields, request.method === "PUT"),
  ]);
  return recordsAnswer(sandbox, base, table, body, rows, false);
}

export function updateRecords(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  const body = jsonBody(request);
  if (body.records === undefined) throw missingFields();
  const merge = body.performUpsert === undefined ? undefined : mergeOptions(table, body.performUpsert);
  const items = body.records;
  const isItem = (item: unknown) =>
    isObject(item) &&
    isObject(item.fields) &&
    (merge ? !("id" in item) || isSandboxId("rec", item.id) : isSandboxId("rec", item.id));
  if (!Array.isArray(items) || items.length === 0 || items.length > MAX_RECORDS || !items.every(isItem))
    throw apiError(422, "INVALID_RECORDS", UPDATE_RECORDS_MESSAGE);
  const [created, updated] = [[] as string[], [] as string[]];
  const rows = write(sandbox, base, request, body, (context) =>
    items.map((item: { id?: string; fields: Record<string, unknown> }) => {
      let row: SandboxRow | undefined;
      if (item.id === undefined && merge) row = upsertTarget(context, table, merge, item.fields);
      else {
        row = table.rows.get(item.id!);
        if (!row) throw rowDoesNotExist(item.id!);
      }
      if (!row) {
        const made = createRow(context, table, item.fields);
        created.push(made.id);
        return made;
      }
      updated.push(row.id);
      return updateRow(context, table, row, item.fields, request.method === "PUT");
    }),
  );
  const extra = merge ? { createdRecords: created, updatedRecords: updated } : undefined;
  return recordsAnswer(sandbox, base, table, body, rows, true, extra);
}

export function deleteRecord(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  row: SandboxRow,
  request: ApiRequest,
): ApiAnswer {
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    transaction.deleteRow(table, row),
  );
  return okAnswer({ id: row.id, deleted: true });
}

export function deleteRecords(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  const ids = request.query.filter(([name]) => /^records(\[\d*\])?$/.test(name)).map(([, value]) => value);
  if (ids.length === 0 || ids.length > MAX_RECORDS) throw invalidRequest();
  const rows = ids.map((id) => {
    const row = table.rows.get(id);
    if (!row) throw recordNotFound();
    return row;
  });
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) => {
    for (const row of new Set(rows)) transaction.deleteRow(table, row);
  });
  return okAnswer({ records: ids.map((id) => ({ deleted: true, id })) });
}

function write<T>(
  sandbox: Sandbox,
  base: SandboxBase,
  request: ApiRequest,
  body: Record<string, unknown>,
  make: (context: WriteContext) => T,
): T {
  const typecast = booleanOf(body.typecast);
  if (typecast === undefined || booleanOf(body.returnFieldsByFieldId) === undefined) throw invalidRequest();
  const mayExtend = isAtLeast(permissionLevel(request.key, base.id), "create");
  return sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    make(writeContext(sandbox, transaction, typecast, mayExtend)),
  );
}

export function writeContext(
  sandbox: Sandbox,
  transaction: Transaction,
  typecast: boolean,
  mayExtend: boolean,
): WriteContext {
  const { computed, store } = sandbox;
  return { transaction, computed, users: store.users, random: store.random, typecast, mayExtend };
}

function createRow(context: WriteContext, table: SandboxTable, fields: Record<string, unknown>): SandboxRow {
  const written = writtenCells(context, (name) => fieldToWrite(table, name), fields);
  const cells: Cells = {};
  for (const [field, value] of written) if (value !== undefined) cells[field.id] = value;
  return context.transaction.createRow(table, cells);
}

function updateRow(
  context: WriteContext,
  table: SandboxTable,
  row: SandboxRow,
  fields: Record<string, unknown>,
  isReplacing: boolean,
): SandboxRow {
  const written = writtenCells(context, (name) => fieldToWrite(table, name), fields, row);
  if (isReplacing)
    for (const field of table.fields)
      if (!isComputed(field) && !written.has(field)) written.set(field, undefined);
  for (const [field, value] of written) {
    if (isReplacing && value === undefined && row.cells[field.id] === undefined) continue;
    context.transaction.setCell(table, row, field, value);
  }
  return row;
}

function fieldToWrite(table: SandboxTable, nameOrId: string): SandboxField {
  const field = findField(table, nameOrId);
  if (!field) throw unknownField(nameOrId);
  return field;
}

function recordsAnswer(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  body: Record<string, unknown>,
  rows: SandboxRow[],
  isMany: boolean,
  extra?: Record<string, unknown>,
): ApiAnswer {
  const shape = shapeOf({ returnFieldsByFieldId: body.returnFieldsByFieldId });
  const records = rows.map((row) => recordJson(sandbox, base, table, row, shape));
  if (!isMany) return { status: 200, text: records[0]! };
  const rest = extra ? `,${JSON.stringify(extra).slice(1, -1)}` : "";
  return { status: 200, text: `{"records":[${records.join(",")}]${rest}}` };
}

function missingFields() {
  return apiError(422, "INVALID_REQUEST_MISSING_FIELDS", 'Could not find field "fields" in the request body');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @throws ApiError 403 for a role that may not write */
export function requireEditor(request: ApiRequest, base: SandboxBase, table: SandboxTable): void {
  const level = permissionLevel(request.key, base.id);
  if (isAtLeast(level, "edit")) return;
  const creates = request.method === "POST";
  throw creates
    ? notPermitted(`You are not permitted to create records in table ${table.name} (${table.id})`)
    : notPermitted();
}
