/**
 * Routes API requests by path and method, and checks whether the key may make the call.
 */
import { newAttachment } from "./attachments";
import { authorize, type Scope } from "./auth";
import { commentCall } from "./comments";
import {
  apiError,
  invalidRequest,
  permissionsOrModelNotFound,
  recordNotFound,
  tableNotFound,
  unknownField,
  unroutable,
} from "./errors";
import { listPage } from "./list";
import { listParams, rawFromBody, rawFromQuery } from "./list-params";
import { metaCall } from "./meta";
import { findField, type SandboxBase, type SandboxRow, type SandboxTable, tableByIdOrName } from "./model";
import { isSandboxId } from "./random";
import { cellOut, recordJson, shapeOf } from "./record";
import { type ApiAnswer, type ApiRequest, jsonBody, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";
import { syncCsv } from "./sync-csv";
import { webhookCall } from "./webhooks";
import {
  createRecords,
  deleteRecord,
  deleteRecords,
  requireEditor,
  updateRecord,
  updateRecords,
} from "./writes";

/** The largest upload. */
const MAX_UPLOAD_BYTES = 5 * 1024 * 1024;

const SINGLE_RECORD_PARAMETERS = new Set(["cellFormat", "timeZone", "userLocale", "returnFieldsByFieldId"]);

/** Answers a request below `/v0`. @throws ApiError */
export function answerApi(sandbox: Sandbox, request: ApiRequest): ApiAnswer {
  const { segments, method } = request;
  const [baseId, tableName, third] = segments;
  if (baseId === "meta") return metaCall(sandbox, request);
  if (baseId === "bases") return webhookCall(sandbox, request);
  if (!isSandboxId("app", baseId) || tableName === undefined || segments.length > 5) throw unroutable();
  if (segments.length === 4 && segments[3] === "uploadAttachment" && method === "POST") {
    const base = openBase(sandbox, request, baseId, true);
    return uploadAttachment(sandbox, base, tableName, third!, request);
  }
  if (segments.length === 2) return tableCall(sandbox, baseId, tableName, request);
  if (third === "listRecords" && method === "POST" && segments.length === 3)
    return list(sandbox, baseId, tableName, request);
  if (third === "sync" && segments.length === 4 && method === "POST") {
    const base = openBase(sandbox, request, baseId, true);
    authorize(request.key, "schema.bases:write", base.id, "create");
    return syncCsv(sandbox, base, openTable(sandbox, base, tableName), request);
  }
  if (!isSandboxId("rec", third)) throw unroutable();
  if (segments[3] === "comments") return comments(sandbox, baseId, tableName, third, request);
  if (segments.length === 3) return recordCall(sandbox, baseId, tableName, third, request);
  throw unroutable();
}

/** Whether the call is a list of records, by either method. For faults that concern lists. */
export function isListCall(method: string, segments: readonly string[]): boolean {
  const isTable = segments[0] !== "meta" && segments.length === 2;
  return (isTable && method === "GET") || (segments[2] === "listRecords" && method === "POST");
}

function tableCall(sandbox: Sandbox, baseId: string, tableName: string, request: ApiRequest): ApiAnswer {
  if (request.method === "GET") return list(sandbox, baseId, tableName, request);
  const base = openBase(sandbox, request, baseId, true);
  const table = openTable(sandbox, base, tableName);
  requireEditor(request, base, table);
  switch (request.method) {
    case "POST":
      return createRecords(sandbox, base, table, request);
    case "PATCH":
    case "PUT":
      return updateRecords(sandbox, base, table, request);
    case "DELETE":
      return deleteRecords(sandbox, base, table, request);
    default:
      throw unroutable();
  }
}

function recordCall(
  sandbox: Sandbox,
  baseId: string,
  tableName: string,
  recordId: string,
  request: ApiRequest,
): ApiAnswer {
  const base = openBase(sandbox, request, baseId, request.method !== "GET");
  const table = openTable(sandbox, base, tableName);
  if (request.method === "GET") return getRecord(sandbox, base, table, recordId, request);
  requireEditor(request, base, table);
  const row = table.rows.get(recordId);
  if (!row) throw recordNotFound();
  if (request.method === "DELETE") return deleteRecord(sandbox, base, table, row, request);
  if (request.method !== "PATCH" && request.method !== "PUT") throw unroutable();
  return updateRecord(sandbox, base, table, row, request);
}

function list(sandbox: Sandbox, baseId: string, tableName: string, request: ApiRequest): ApiAnswer {
  const base = openBase(sandbox, request, baseId, false);
  const table = openTable(sandbox, base, tableName);
  const { strictQuery } = sandbox.settings;
  const raw =
    request.method === "GET"
      ? rawFromQuery(request.query, strictQuery)
      : rawFromBody(jsonBody(request), request.query, strictQuery);
  return listPage(sandbox, base, table, listParams(table, raw), request.listFault);
}

/** A record that is not in the table is looked up in the whole base, as the service does. */
function getRecord(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  recordId: string,
  request: ApiRequest,
): ApiAnswer {
  if (sandbox.settings.strictQuery && request.query.some(([name]) => !SINGLE_RECORD_PARAMETERS.has(name)))
    throw invalidRequest();
  const shape = shapeOf(Object.fromEntries(request.query));
  const found = findRow(base, table, recordId);
  if (!found) throw recordNotFound();
  return { status: 200, text: recordJson(sandbox, base, found.table, found.row, shape) };
}

function findRow(
  base: SandboxBase,
  first: SandboxTable | undefined,
  recordId: string,
): { table: SandboxTable; row: SandboxRow } | undefined {
  for (const table of first ? [first, ...base.tables.values()] : base.tables.values()) {
    const row = table.rows.get(recordId);
    if (row) return { table, row };
  }
  return undefined;
}

function comments(
  sandbox: Sandbox,
  baseId: string,
  tableName: string,
  recordId: string,
  request: ApiRequest,
): ApiAnswer {
  const [, , , , commentId] = request.segments;
  const { method } = request;
  if (!(commentId === undefined ? ["GET", "POST"] : ["PATCH", "DELETE"]).includes(method)) throw unroutable();
  const scope = method === "GET" ? "data.recordComments:read" : "data.recordComments:write";
  const base = openBaseFor(sandbox, request, baseId, scope, method === "GET" ? "read" : "comment");
  const table = openTable(sandbox, base, tableName);
  const row = table.rows.get(recordId);
  if (!row) throw recordNotFound();
  return commentCall(sandbox, base, table, row, commentId, request);
}

/** Appends an uploaded file to a cell. The answer is keyed by field id and contains the whole cell. */
function uploadAttachment(
  sandbox: Sandbox,
  base: SandboxBase,
  recordId: string,
  fieldName: string,
  request: ApiRequest,
): ApiAnswer {
  const found = findRow(base, undefined, recordId);
  if (!found) throw recordNotFound();
  const { table, row } = found;
  requireEditor(request, base, table);
  const field = findField(table, fieldName);
  if (!field) throw unknownField(fieldName);
  const { contentType, file, filename } = jsonBody(request);
  if (field.type !== "multipleAttachments") throw invalidRequest();
  if (typeof contentType !== "string" || typeof file !== "string" || typeof filename !== "string")
    throw invalidRequest();
  const bytes = Buffer.from(file, "base64");
  if (bytes.length > MAX_UPLOAD_BYTES)
    throw apiError(422, "INVALID_ATTACHMENT_OBJECT", "The file is larger than 5 MB");
  const id = sandbox.store.random.id("att");
  sandbox.attachments.keep(id, bytes);
  const attachment = newAttachment(id, `upload:${id}`, filename, { size: bytes.length, contentType });
  const current = row.cells[field.id];
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    transaction.setCell(table, row, field, [...(Array.isArray(current) ? current : []), attachment]),
  );
  const cell = cellOut(sandbox, base, table, row, field, { byId: true }, sandbox.attachments.token());
  return okAnswer({ id: row.id, createdTime: row.createdTime, fields: { [field.id]: cell } });
}

function openBase(sandbox: Sandbox, request: ApiRequest, baseId: string, isWrite: boolean): SandboxBase {
  // The role's right to write is checked once the table is known, because the error names it.
  return openBaseFor(sandbox, request, baseId, isWrite ? "data.records:write" : "data.records:read", "read");
}

function openBaseFor(
  sandbox: Sandbox,
  request: ApiRequest,
  baseId: string,
  scope: Scope,
  level: "read" | "comment",
): SandboxBase {
  authorize(request.key, scope, baseId, level);
  const isChange = request.method !== "GET" && !isListCall(request.method, request.segments);
  const base = sandbox.store.open(baseId, isChange);
  if (!base) throw permissionsOrModelNotFound();
  return base;
}

function openTable(sandbox: Sandbox, base: SandboxBase, nameOrId: string): SandboxTable {
  const table = tableByIdOrName(base, nameOrId);
  if (table) return table;
  throw sandbox.settings.notFoundMode === "legacy"
    ? tableNotFound(nameOrId, base.id)
    : permissionsOrModelNotFound();
}
