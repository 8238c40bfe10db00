/** The operations as sections for the search of the documentation. */
import type { ApiDocument } from "../openapi";
import { operationsByTag } from "./listing";
import { fieldsOf, refName } from "./schema-text";

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
