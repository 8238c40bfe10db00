/**
 * Reads a webhook's specification: what it watches, as clients send it, checked against the base.
 *
 * Absent keys mean everything. Only ids are accepted, never names.
 */
import { apiError, invalidRequest } from "../errors";
import { fieldById, type SandboxBase, type SandboxTable, type View } from "../model";

const DATA_TYPES = ["tableData", "tableFields", "tableMetadata"] as const;
export type DataType = (typeof DATA_TYPES)[number];

const CHANGE_TYPES = ["add", "remove", "update"] as const;
export type ChangeType = (typeof CHANGE_TYPES)[number];

const SOURCES = [
  "client",
  "publicApi",
  "formSubmission",
  "formPageSubmission",
  "automation",
  "system",
  "sync",
  "anonymousUser",
  "unknown",
] as const;

/** Kinds of views that a webhook cannot be limited to. */
const UNWATCHABLE_VIEWS = new Set(["form", "list"]);

export interface Filters {
  dataTypes: DataType[];
  /** A table's or a view's id. */
  recordChangeScope?: string;
  changeTypes?: ChangeType[];
  fromSources?: string[];
  sourceOptions?: { formSubmission?: { viewId: string }; formPageSubmission?: { pageId: string } };
  watchDataInFieldIds?: string[];
  watchSchemasOfFieldIds?: string[];
}

export interface Includes {
  includeCellValuesInFieldIds?: string[] | "all";
  includePreviousCellValues?: boolean;
  includePreviousFieldDefinitions?: boolean;
}

export interface Specification {
  options: { filters: Filters; includes?: Includes };
}

/**
 * @param isStrict reject keys that the reference does not name
 * @throws ApiError 422 that names the invalid part
 */
export function readSpecification(base: SandboxBase, given: unknown, isStrict: boolean): Specification {
  const specification = part(given, "specification");
  const options = part(specification.options, "specification.options");
  const filters = part(options.filters, "filters");
  const includes = options.includes === undefined ? undefined : part(options.includes, "includes");
  if (isStrict) {
    refuseOthers(specification, "specification", ["options"]);
    refuseOthers(options, "specification.options", ["filters", "includes"]);
    refuseOthers(filters, "filters", [...Object.keys(FILTER_CHECKS)]);
    if (includes) refuseOthers(includes, "includes", [...Object.keys(INCLUDE_CHECKS)]);
  }
  if (filters.dataTypes === undefined) throw wrong("filters.dataTypes");
  checkParts(base, filters, FILTER_CHECKS, "filters");
  if (includes) checkParts(base, includes, INCLUDE_CHECKS, "includes");
  return specification as unknown as Specification;
}

type Check = (base: SandboxBase, value: unknown) => boolean;

const FILTER_CHECKS: Record<keyof Filters, Check> = {
  dataTypes: (_base, value) => isListOf(value, DATA_TYPES) && value.length > 0,
  recordChangeScope: (base, value) => scopeOf(base, value) !== undefined,
  changeTypes: (_base, value) => isListOf(value, CHANGE_TYPES),
  fromSources: (_base, value) => isListOf(value, SOURCES),
  sourceOptions: (_base, value) => typeof value === "object" && value !== null,
  watchDataInFieldIds: areFields,
  watchSchemasOfFieldIds: areFields,
};

const INCLUDE_CHECKS: Record<keyof Includes, Check> = {
  includeCellValuesInFieldIds: (base, value) => value === "all" || areFields(base, value),
  includePreviousCellValues: (_base, value) => typeof value === "boolean",
  includePreviousFieldDefinitions: (_base, value) => typeof value === "boolean",
};

function checkParts(
  base: SandboxBase,
  given: Record<string, unknown>,
  checks: Record<string, Check>,
  where: string,
): void {
  for (const [name, check] of Object.entries(checks))
    if (given[name] !== undefined && !check(base, given[name])) throw wrong(`${where}.${name}`);
}

/** The table, and the view if it is one, that a `recordChangeScope` names. */
export function scopeOf(base: SandboxBase, scope: unknown): { table: SandboxTable; view?: View } | undefined {
  for (const table of base.tables.values()) {
    if (table.id === scope) return { table };
    const view = table.views.find((one) => one.id === scope);
    if (view && !UNWATCHABLE_VIEWS.has(view.type)) return { table, view };
  }
  return undefined;
}

function areFields(base: SandboxBase, value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((id) => [...base.tables.values()].some((table) => fieldById(table, String(id))))
  );
}

function isListOf(value: unknown, words: readonly string[]): value is string[] {
  return Array.isArray(value) && value.every((one) => words.includes(String(one)));
}

function part(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw wrong(name);
}

function refuseOthers(given: Record<string, unknown>, where: string, known: string[]): void {
  const other = Object.keys(given).find((key) => !known.includes(key));
  if (other !== undefined) throw wrong(`${where}.${other}`);
}

const wrong = (name: string) => invalidRequest(`Invalid request: ${name} is missing or not valid.`);

/** The reference does not say how the eleventh webhook is rejected; this is our choice. */
export const tooManyHooks = () =>
  apiError(422, "TOO_MANY_WEBHOOKS_IN_BASE", "The base has as many webhooks as it may have");
