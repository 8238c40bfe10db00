/** What the reference lists, in its order, also for the search of the documentation. */
import type { ApiDocument, JsonSchema } from "../openapi";
import type { ListedOperation } from "./operation";
import { fieldsOf, refName } from "./schema-text";

const FIRST = ["Bases", "Credentials", "Sources"];

export const tagAnchor = (tag: string) => tag.toLowerCase().replace(/\W+/g, "-");

/** All operations, those of bases first. */
export function operationsByTag(api: ApiDocument): { tag: string; operations: ListedOperation[] }[] {
  const all = Object.entries(api.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method, path, operation })),
  );
  const rank = (tag: string) => (FIRST.includes(tag) ? FIRST.indexOf(tag) : FIRST.length);
  return api.tags
    .map(({ name: tag }) => ({ tag, operations: all.filter(({ operation }) => operation.tags[0] === tag) }))
    .sort((a, b) => rank(a.tag) - rank(b.tag));
}

/** The components, except bodies that only one operation has: their fields are shown with it. */
export function objectsOf(api: ApiDocument): [string, JsonSchema][] {
  const bodies = new Set(
    Object.values(api.paths)
      .flatMap((operations) => Object.values(operations))
      .flatMap(({ requestBody }) => bodyNames(requestBody?.content["application/json"]?.schema)),
  );
  return Object.entries(api.components.schemas).filter(([name]) => !bodies.has(name));
}

function bodyNames(schema: JsonSchema | undefined): string[] {
  if (!schema) return [];
  return [schema, ...(schema.anyOf ?? [])].flatMap((one) => refName(one) ?? []);
}

/** The example of an object, from the first answer that is one, or has one in a list. */
export function exampleOfObject(name: string, api: ApiDocument): unknown {
  for (const operations of Object.values(api.paths)) {
    for (const { responses } of Object.values(operations)) {
      for (const { content } of Object.values(responses)) {
        const { schema, example, examples } = content?.["application/json"] ?? {};
        if (schema && refName(schema) === name) return example ?? Object.values(examples ?? {})[0]?.value;
        if (schema?.items && refName(schema.items) === name) return (example as unknown[])[0];
      }
    }
  }
  return undefined;
}

/** The operations as sections for the search. */
export function apiSections(api: ApiDocument) {
  return operationsByTag(api).flatMap(({ tag, operations }) =>
    operations.map(({ method, path, operation }) => {
      const schema = operation.requestBody?.content["application/json"]?.schema;
      const body = schema && api.components.schemas[refName(schema) ?? ""];
      const fields = fieldsOf(body ?? {}).map(({ name }) => name);
      return {
        href: `/docs/api#${operation.operationId}`,
        title: `API reference, ${tag}`,
        heading: operation.summary,
        text: [`${method.toUpperCase()} ${path}`, operation.description ?? "", fields.join(", ")].join("\n"),
      };
    }),
  );
}
