/** Describes one operation of the API from its route. */
import type { ErrorCode } from "../../../core/errors";
import type {
  ApiContent,
  ApiOperation,
  ApiParameter,
  ApiResponse,
  JsonSchema,
} from "../../../views/docs/openapi";
import { permissionFor } from "../access";
import { ERRORS } from "../schemas/parts";
import { errorResponses, usualErrors } from "./errors";
import { exampleOf } from "./example";
import { type Components, toJsonSchema } from "./json-schema";

/** What the framework knows of a route, as far as it is used here. */
export interface ApiRoute {
  method: string;
  path: string;
  hooks: {
    body?: JsonSchema;
    params?: JsonSchema;
    query?: JsonSchema;
    response?: Record<string, JsonSchema>;
    detail?: {
      tags?: string[];
      summary?: string;
      description?: string;
      responses?: Record<string, ApiResponse>;
      [ERRORS]?: readonly ErrorCode[];
    };
  };
}

const DONE: Record<string, string> = {
  "200": "Success",
  "201": "Created",
  "202": "Accepted; the work continues in the background",
  "204": "Done; the answer has no body",
};

/** @param path with its parameters in braces */
export function describeOperation(route: ApiRoute, path: string, components: Components): ApiOperation {
  const { body, params, query, response = {}, detail = {} } = route.hooks;
  const schemaOf = (schema: JsonSchema) => toJsonSchema(schema, components);
  const parameters = [...parametersOf("path", params, schemaOf), ...parametersOf("query", query, schemaOf)];
  const answers = Object.entries(response).map(([status, schema]): [string, ApiResponse] => [
    status,
    { description: DONE[status] ?? "Success", content: json(schemaOf(schema), components) },
  ]);
  const errors = usualErrors({ hasId: !!params, hasBody: !!body, hasQuery: !!query });
  return {
    operationId: operationId(route.method, path),
    tags: detail.tags ?? [],
    summary: detail.summary ?? "",
    description: [detail.description, scopeText(route)].filter(Boolean).join(" "),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body ? { requestBody: requestBody(body, schemaOf, components) } : {}),
    responses: {
      ...Object.fromEntries(answers),
      ...detail.responses,
      ...errorResponses([...errors, ...(detail[ERRORS] ?? [])]),
    },
  };
}

/** The scope that a token needs; managing members needs the owner's token, too. */
function scopeText({ method, path }: ApiRoute): string {
  const permission = permissionFor(method, path);
  if (permission === "members") return "Needs the scope `write` and a token of the account's owner.";
  return `Needs the scope \`${permission}\`.`;
}

type Convert = (schema: JsonSchema) => JsonSchema;

function parametersOf(where: ApiParameter["in"], all: JsonSchema | undefined, schemaOf: Convert) {
  return Object.entries(all?.properties ?? {}).map(([name, given]): ApiParameter => {
    const { description, ...schema } = schemaOf(given);
    return {
      name,
      in: where,
      required: where === "path" || (all?.required ?? []).includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    };
  });
}

/** A body that may be left out, or be null, is optional. */
function requestBody(body: JsonSchema, schemaOf: Convert, components: Components) {
  const required = !body.anyOf?.some(({ type }) => type === "null");
  return { required, content: json(schemaOf(body), components) };
}

function json(schema: JsonSchema, components: Components): Record<string, ApiContent> {
  return { "application/json": { schema, example: exampleOf(schema, components) } };
}

/** `GET /api/v1/bases/{id}/runs` → `getBasesByIdRuns`. */
function operationId(method: string, path: string): string {
  const words = path
    .replace(/^\/api\/v\d+/, "")
    .split(/[/-]/)
    .filter((part) => part !== "")
    .map((part) => (part.startsWith("{") ? `by-${part.slice(1, -1)}` : part))
    .flatMap((part) => part.split("-"));
  return method.toLowerCase() + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}
