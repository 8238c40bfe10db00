/**
 * Writes the types of the command line's client from the description of the management API: `bun run client`, which
 * everything that needs them runs first.
 *
 * The form is that of openapi-typescript, which needs an older compiler than ours; openapi-fetch reads it.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { retypingSettings, settingList } from "../../core/control/bases";
import { platformFacts } from "../../core/source/registry";
import type { ApiOperation, JsonSchema } from "../../views/docs/openapi";
import { apiDocument } from "./api-description";
import { repoRoot } from "./source-files";

const FOLDER = join(repoRoot, "apps/cli/client");
const HEAD = "/** Generated from the description of the management API by `bun run client`: do not edit. */";
const ERROR = 'default: { content: { "application/json": components["schemas"]["ApiError"] } }';

function clientSchema(): string {
  const paths = Object.entries(apiDocument.paths).map(([path, methods]) => {
    const operations = Object.entries(methods).map(
      ([method, operation]) =>
        `    /** ${operation.summary} */\n    ${method}: ${operationType(operation)};\n`,
    );
    return `  "${path}": {\n${operations.join("")}  };\n`;
  });
  const schemas = Object.entries(apiDocument.components.schemas).map(
    ([name, schema]) => `    ${name}: ${typeOf(schema, "    ")};\n`,
  );
  return `${HEAD}

export interface paths {
${paths.join("")}}

export interface components {
  schemas: {
${schemas.join("")}  };
}
`;
}

function operationType({ parameters = [], requestBody, responses }: ApiOperation): string {
  const indent = "      ";
  const given = (["path", "query"] as const).flatMap((place) => {
    const own = parameters.filter((one) => one.in === place);
    if (own.length === 0) return [];
    const list = own.map(
      ({ name, required, schema }) => `${name}${required ? "" : "?"}: ${typeOf(schema, indent)}`,
    );
    return [`${place}${own.some(({ required }) => required) ? "" : "?"}: { ${list.join("; ")} }`];
  });
  const body = requestBody && contentType(requestBody.content);
  const [status, answer] = Object.entries(responses).find(([code]) => code < "300")!;
  return `{
${indent}parameters: { ${given.join("; ")} };
${body ? `${indent}requestBody: ${body};\n` : ""}${indent}responses: { ${status}: ${contentType(answer.content ?? {})}; ${ERROR} };
    }`;
}

function contentType(content: Record<string, { schema: JsonSchema }>): string {
  const types = Object.entries(content).map(([type, { schema }]) => `"${type}": ${typeOf(schema, "      ")}`);
  return types.length === 0 ? "{ content?: never }" : `{ content: { ${types.join("; ")} } }`;
}

function typeOf(schema: JsonSchema, indent: string): string {
  if (schema.$ref) return `components["schemas"]["${schema.$ref.split("/").at(-1)}"]`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const types = [schema.type ?? "unknown"].flat();
  if (schema.enum) {
    const values = schema.enum.map((one) => JSON.stringify(one));
    return [...new Set([...values, ...types.filter((one) => one === "null")])].join(" | ");
  }
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  return types.map((type) => plainType(type, schema, indent)).join(" | ");
}

function plainType(type: string, schema: JsonSchema, indent: string): string {
  if (type === "integer") return "number";
  if (type === "array") return `(${schema.items ? typeOf(schema.items, indent) : "unknown"})[]`;
  if (type !== "object") return type;
  const { properties, required = [], additionalProperties, patternProperties = {} } = schema;
  if (!properties) {
    const [value] = [additionalProperties, ...Object.values(patternProperties)].filter(isSchema);
    return `Record<string, ${value ? typeOf(value, indent) : "unknown"}>`;
  }
  const lines = Object.entries(properties).map(([name, property]) => {
    const doc = property.description?.replaceAll("*/", "*\\/").replaceAll("\n", " ");
    const value = typeOf(property, `${indent}  `);
    return `${doc ? `${indent}  /** ${doc} */\n` : ""}${indent}  ${name}${required.includes(name) ? "" : "?"}: ${value};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

/** What a file of the contract may say, as values: types alone check nothing at run time. */
function clientFacts(): string {
  const { schemas } = apiDocument.components;
  const settings = schemas.NewBase!.properties!.settings!.properties!;
  const valuesOf = (schema: JsonSchema) =>
    schema.enum ?? (schema.anyOf ?? []).map((one) => one.const ?? one.enum?.[0]);
  const rebuilding = new Set<string>(
    settingList.filter(({ key }) => retypingSettings.some((one) => one === key)).map(({ name }) => name),
  );
  const limits = Object.entries(settings).map(([name, schema]) => {
    const { type, minimum, maximum } = schema;
    const values = valuesOf(schema);
    const isRebuilding = rebuilding.has(name) || undefined;
    return [
      name,
      {
        type: type ?? "string",
        ...{ minimum, maximum, isRebuilding },
        ...(values.length > 0 ? { values } : {}),
      },
    ];
  });
  const facts = {
    /** What a base belongs to unless it is named. */
    defaultPlatform: platformFacts[0]!.id,
    settings: Object.fromEntries(limits),
    plans: valuesOf(schemas.Plan!),
    alertKinds: valuesOf(schemas.AlertKind!),
    webhookForms: valuesOf(schemas.WebhookForm!),
    typesLanguages: valuesOf(
      apiDocument.paths["/api/v1/bases/{id}/types"]!.get!.parameters!.find(({ name }) => name === "lang")!
        .schema,
    ),
  };
  return `${HEAD}\n\nexport const apiFacts = ${JSON.stringify(facts, null, 2)} as const;\n`;
}

if (import.meta.main) {
  for (const [name, text] of [
    ["schema.ts", clientSchema()],
    ["facts.ts", clientFacts()],
  ] as const) {
    // Another process may read it meanwhile.
    const whole = join(FOLDER, `.${name}.${process.pid}`);
    writeFileSync(whole, text);
    renameSync(whole, join(FOLDER, name));
  }
  process.exit();
}
