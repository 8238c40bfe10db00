/** O1: the description of the management API is whole, and its examples are what its schemas accept. */
import Ajv2020 from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { apiDocument, apiRoutes } from "../support/api-description";

const operations = Object.entries(apiDocument.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })),
);

const ajv = new Ajv2020({ strict: false });
addFormats(ajv);
ajv.addSchema({ $id: "api", components: apiDocument.components });

/** The reasons why `value` does not fit `schema`. */
function faults(schema: object, value: unknown): string[] {
  const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components'));
  const fits = ajv.compile(whole);
  return fits(value)
    ? []
    : (fits.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** All schemas within a value. */
function* schemasIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>;
  for (const part of Object.values(value)) yield* schemasIn(part);
}

test("every route of the API is described, and every body of a route", () => {
  expect(operations.length).toBe(apiRoutes.length);
  const bodies = apiRoutes.filter(({ hooks }) => hooks.body !== undefined);
  expect(bodies.length).toBeGreaterThan(8);
  expect(operations.filter(({ operation }) => operation.requestBody).length).toBe(bodies.length);
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(operations)(
  "$name has a summary, answers and errors, with examples that fit",
  ({ path, operation }) => {
    const { summary, tags, responses, requestBody, parameters = [] } = operation;
    expect([summary, tags.length]).toEqual([expect.stringMatching(/./), 1]);
    const inPath = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => `{${name}}`);
    expect(path.match(/\{\w+\}/g) ?? []).toEqual(inPath);

    const body = requestBody?.content["application/json"];
    if (requestBody) {
      expect(faults(body!.schema, body!.example)).toEqual([]);
      expect(Object.keys(body!.example as object).length).toBeGreaterThan(0);
      // A text without an example of its own.
      expect(JSON.stringify(body!.example)).not.toContain('"text"');
    }
    const expected = ["401", "429", ...(inPath.length > 0 ? ["404"] : []), ...(body ? ["415", "422"] : [])];
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(expected));
    expect(Object.keys(responses).filter((status) => status < "300")).toHaveLength(1);
    for (const { description, content = {} } of Object.values(responses)) {
      expect(description).toMatch(/./);
      const { schema, example, examples = {} } = content["application/json"] ?? {};
      const all = [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples).map(({ value }) => value),
      ];
      if (schema) expect(all.length).toBeGreaterThan(0);
      for (const one of all) expect(faults(schema!, one)).toEqual([]);
    }
  },
);

test("no number is described as a text, and no enumeration has a default", () => {
  const all = [...schemasIn(apiDocument)];
  // The framework's form of a number, which accepts a text as well.
  const loose = all.filter(
    ({ type, format }) => type === "string" && /^(integer|numeric)$/.test(String(format)),
  );
  expect(loose).toEqual([]);
  expect(all.filter((schema) => "enum" in schema && "default" in schema)).toEqual([]);
});

test("every reference leads to a component, and every component is used", () => {
  const names = Object.keys(apiDocument.components.schemas).map((name) => `#/components/schemas/${name}`);
  const used = [...schemasIn(apiDocument)].flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []));
  expect([...new Set(used)].sort()).toEqual(names.sort());
  expect(names).toEqual(expect.arrayContaining(["#/components/schemas/Base", "#/components/schemas/Run"]));
});
