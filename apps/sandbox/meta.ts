/**
 * The meta API: the current user, the bases, their tables and fields, and changes to those.
 */
import { authorize, permissionLevel } from "./auth";
import { absent, apiError, invalidRequest, permissionsOrModelNotFound, unroutable } from "./errors";
import { fieldById, type SandboxBase, type SandboxField, type SandboxTable, tableByIdOrName } from "./model";
import { isSandboxId } from "./random";
import { type ApiAnswer, type ApiRequest, jsonBody, okAnswer } from "./request";
import type { Sandbox } from "./sandbox";
import {
  checkCreatable,
  checkFieldName,
  checkTableName,
  emptyBase,
  type FieldInput,
  newTable,
  shownField,
  shownTable,
} from "./schema";
import { addField } from "./schema-edit";

/** Bases in one answer of `meta/bases`. */
const BASES_PER_PAGE = 1000;
const MAX_DESCRIPTION = 20_000;

/** Answers requests below `/v0/meta`. */
export function metaCall(sandbox: Sandbox, request: ApiRequest): ApiAnswer {
  const [, noun, baseId, part, tableId, fields, fieldId] = request.segments;
  const { method, segments } = request;
  if (noun === "whoami" && segments.length === 2 && method === "GET") return whoami(request);
  if (noun !== "bases") throw unroutable();
  if (baseId === undefined) {
    if (method === "GET") return listBases(sandbox, request);
    if (method === "POST") return createBase(sandbox, request);
    throw unroutable();
  }
  if (!isSandboxId("app", baseId) || part !== "tables") throw unroutable();
  authorize(
    request.key,
    method === "GET" ? "schema.bases:read" : "schema.bases:write",
    baseId,
    method === "GET" ? "read" : "create",
  );
  const base = sandbox.store.open(baseId, method !== "GET");
  if (!base) throw permissionsOrModelNotFound();
  if (tableId === undefined) {
    if (method === "GET") return listTables(base, request);
    if (method === "POST") return createTable(sandbox, base, request);
    throw unroutable();
  }
  const table = tableByIdOrName(base, tableId);
  if (!table) throw absent();
  if (fields === undefined && method === "PATCH") return patchTable(sandbox, base, table, request);
  if (fields !== "fields") throw unroutable();
  if (fieldId === undefined && method === "POST") return createField(sandbox, base, table, request);
  const field = fieldId === undefined ? undefined : fieldById(table, fieldId);
  if (method !== "PATCH" || fieldId === undefined) throw unroutable();
  if (!field) throw absent();
  return patchField(sandbox, base, table, field, request);
}

function whoami({ key }: ApiRequest): ApiAnswer {
  const answer: Record<string, unknown> = { id: key.user.id };
  if (key.scopes.has("user.email:read") && key.user.email) answer.email = key.user.email;
  if (key.isOAuth) answer.scopes = [...key.scopes];
  return okAnswer(answer);
}

function listBases(sandbox: Sandbox, { key, query }: ApiRequest): ApiAnswer {
  if (!key.scopes.has("schema.bases:read")) throw permissionsOrModelNotFound();
  const bases = [...sandbox.store.bases.values()].filter((base) => permissionLevel(key, base.id) !== "none");
  const offset = query.find(([name]) => name === "offset")?.[1] ?? "";
  const start = offset === "" ? 0 : bases.findIndex((base) => base.id === offset.split("/")[1]);
  if (start < 0) throw invalidRequest();
  const shown = bases
    .slice(start, start + BASES_PER_PAGE)
    .map(({ id, name }) => ({ id, name, permissionLevel: permissionLevel(key, id) }));
  const next = bases[start + BASES_PER_PAGE];
  return okAnswer(
    next ? { bases: shown, offset: `${sandbox.store.random.id("itr")}/${next.id}` } : { bases: shown },
  );
}

function listTables(base: SandboxBase, { query }: ApiRequest): ApiAnswer {
  const includes = query.filter(([name]) => name === "include" || name.startsWith("include["));
  if (includes.some(([, value]) => value !== "visibleFieldIds")) throw invalidRequest();
  const tables = [...base.tables.values()];
  return okAnswer({ tables: tables.map((table) => shownTable(table, includes.length > 0)) });
}

function createBase(sandbox: Sandbox, request: ApiRequest): ApiAnswer {
  if (!request.key.scopes.has("schema.bases:write") || typeof request.key.bases !== "string")
    throw permissionsOrModelNotFound();
  const { name, workspaceId, tables } = jsonBody(request);
  if (
    typeof name !== "string" ||
    typeof workspaceId !== "string" ||
    !Array.isArray(tables) ||
    tables.length === 0
  )
    throw invalidRequest();
  const base = emptyBase(name, sandbox.store.random.id("app"));
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) => {
    for (const config of tables) {
      const table = newTable(tableInput(base, config), sandbox.store.random);
      transaction.addTable(table);
      for (const field of fieldInputs(config)) {
        checkFieldName(table, field.name);
        checkCreatable(base, table, field);
        addField(transaction, table, field, sandbox.store.random);
      }
    }
  });
  sandbox.store.bases.set(base.id, base);
  return okAnswer({ id: base.id, tables: [...base.tables.values()].map((table) => shownTable(table)) });
}

function createTable(sandbox: Sandbox, base: SandboxBase, request: ApiRequest): ApiAnswer {
  const body = jsonBody(request);
  const table = newTable(tableInput(base, body), sandbox.store.random);
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) => {
    transaction.addTable(table);
    for (const field of fieldInputs(body)) {
      checkFieldName(table, field.name);
      checkCreatable(base, table, field);
      addField(transaction, table, field, sandbox.store.random);
    }
  });
  return okAnswer(shownTable(table));
}

function patchTable(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  const { name, description, dateDependencySettings } = jsonBody(request);
  const patch: Record<string, unknown> = {};
  if (name !== undefined) {
    checkTableName(base, name, table);
    patch.name = name;
  }
  if (description !== undefined) patch.description = checkedDescription(description);
  if (dateDependencySettings !== undefined) patch.dateDependencySettings = dateDependencySettings;
  if (Object.keys(patch).length === 0) throw invalidRequest();
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    transaction.updateTable(table, patch),
  );
  return okAnswer(shownTable(table));
}

function createField(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  request: ApiRequest,
): ApiAnswer {
  const [input] = fieldInputs({ fields: [jsonBody(request)] });
  checkFieldName(table, input!.name);
  checkCreatable(base, table, input!);
  const field = sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    addField(transaction, table, input!, sandbox.store.random),
  );
  return okAnswer(shownField(field));
}

function patchField(
  sandbox: Sandbox,
  base: SandboxBase,
  table: SandboxTable,
  field: SandboxField,
  request: ApiRequest,
): ApiAnswer {
  const { name, description, options, ...rest } = jsonBody(request);
  // The API cannot change the type of a field, and nothing else exists.
  if (
    Object.keys(rest).length > 0 ||
    (name === undefined && description === undefined && options === undefined)
  )
    throw invalidRequest();
  const patch: Partial<SandboxField> = {};
  if (name !== undefined) {
    checkFieldName(table, name, field);
    patch.name = name;
  }
  if (description !== undefined) patch.description = checkedDescription(description);
  if (options !== undefined) {
    if (field.type === "multipleRecordLinks" || typeof options !== "object") throw invalidRequest();
    patch.options = { ...field.options, ...options };
  }
  sandbox.store.change(base, "publicApi", request.key.user, (transaction) =>
    transaction.updateField(table, field, patch),
  );
  return okAnswer(shownField(field));
}

function tableInput(base: SandboxBase, config: unknown): { name: string; description?: string } {
  const { name, description } = (config ?? {}) as Record<string, unknown>;
  checkTableName(base, name);
  return description === undefined ? { name } : { name, description: checkedDescription(description) };
}

function fieldInputs(config: unknown): FieldInput[] {
  const fields = (config as { fields?: unknown } | null)?.fields;
  if (!Array.isArray(fields) || fields.length === 0) throw invalidRequest();
  return fields.map((field: unknown) => {
    const { name, type, description, options } = (field ?? {}) as Record<string, unknown>;
    if (typeof name !== "string")
      throw apiError(422, "DUPLICATE_OR_EMPTY_FIELD_NAME", "Field names must be unique and not empty");
    if (
      typeof type !== "string" ||
      (options !== undefined && (typeof options !== "object" || options === null))
    )
      throw invalidRequest();
    const input: FieldInput = { name, type };
    if (description !== undefined) input.description = checkedDescription(description);
    if (options !== undefined) input.options = options as Record<string, unknown>;
    return input;
  });
}

function checkedDescription(description: unknown): string {
  if (typeof description !== "string" || description.length > MAX_DESCRIPTION) throw invalidRequest();
  return description;
}
