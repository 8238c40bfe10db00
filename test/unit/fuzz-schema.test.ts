/** Answers to "which tables?", "which bases?" and "who am I?": any JSON gives a valid result, or a coded error. */
import fc from "fast-check";
import { expect } from "vitest";
import type { SourceSchema } from "../../core/source";
import { parseAnswer, refusedCall } from "../../core/source/airtable/answers";
import { dependentsOf } from "../../core/source/airtable/dependents";
import { FIELD_TYPES, readBases, readIdentity, readSchema } from "../../core/source/airtable/schema";
import { readWebhooks } from "../../core/source/airtable/webhooks";
import { anyJson, anyText, codeOr, damaged, fuzz } from "../support/fuzz";
import { wireSchema } from "../support/wire-schema";

const readers = { readSchema, readBases, readIdentity, readWebhooks };
const reader = fc.constantFrom(...Object.values(readers));

/** What every parsed schema guarantees to the rest of the service. */
function expectSchema({ tables }: SourceSchema): void {
  expect(new Set(tables.map((table) => table.id)).size).toBe(tables.length);
  for (const table of tables) {
    expect(table.id).toMatch(/^tbl[\w-]{1,50}$/);
    expect(new Set(table.fields.map((field) => field.id)).size).toBe(table.fields.length);
    for (const field of table.fields) {
      expect(field.id).toMatch(/^fld[\w-]{1,50}$/);
      expect([...FIELD_TYPES.values(), "unknown"]).toContain(field.type);
    }
  }
}

fuzz(
  "any JSON is a valid answer, or a bad one",
  2000,
  fc.property(
    reader,
    fc.oneof(anyJson(), anyJson(wireSchema), fc.record({ tables: anyJson(), bases: anyJson() })),
    (read, answer) => {
      const code = codeOr(() => read(answer));
      if (typeof code === "string") expect(code).toBe("source_bad_answer");
    },
  ),
);

fuzz(
  "a partly invalid schema is read without the invalid part, or not at all",
  2000,
  fc.property(damaged(wireSchema), (answer) => {
    const schema = codeOr(() => readSchema(answer));
    if (typeof schema === "string") expect(schema).toBe("source_bad_answer");
    else expectSchema(schema);
  }),
);

fuzz(
  "the dependents can be computed for any schema, with cycles and dangling references",
  500,
  fc.asyncProperty(wireSchema, fc.nat(), async (answer, at) => {
    const schema = codeOr(() => readSchema(answer));
    if (typeof schema === "string") return;
    const dependents = dependentsOf(schema);
    for (const table of schema.tables) {
      for (const hop of dependents.hops(table.id, null)) {
        expect(schema.tables.map(({ id }) => id)).toContain(hop.tableId);
      }
    }
    const table = schema.tables[at % Math.max(1, schema.tables.length)];
    if (!table) return;
    const changed = [{ tableId: table.id, fieldId: null, recordIds: ["rec1"] }];
    const found = await dependents.records(changed, (_hop, ids) =>
      ids.map((id) => `${id[0]}${id}`.slice(0, 8)),
    );
    for (const tableId of found.keys()) expect(schema.tables.map(({ id }) => id)).toContain(tableId);
  }),
);

fuzz(
  "a refusal with any status, header and body has a code, and a message of bounded length",
  2000,
  fc.property(
    fc.integer({ min: 100, max: 599 }),
    fc.oneof(
      anyJson().map((body) => JSON.stringify(body)),
      anyJson().map((error) => JSON.stringify({ error: { type: error, message: error } })),
      anyText,
    ),
    fc.oneof(
      fc.constantFrom("30", "1e99", "-1", "soon", "99999999999999999999"),
      fc.stringMatching(/^[ -~]*$/),
    ),
    (status, body, retryAfter) => {
      const error = refusedCall(status, new Headers({ "retry-after": retryAfter }), Buffer.from(body));
      expect(error.code).toMatch(/^source_/);
      expect(error.message.length).toBeLessThan(1500);
      const { retryAfterMs = 0 } = error.details;
      expect(Number.isFinite(retryAfterMs) && Number(retryAfterMs) >= 0).toBe(true);
    },
  ),
);

fuzz(
  "any bytes are JSON, or a bad answer",
  1000,
  fc.property(
    fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.json().map((json) => Buffer.from(json)),
    ),
    (bytes) => {
      expect(codeOr(() => void parseAnswer(Buffer.from(bytes))) ?? "source_bad_answer").toBe(
        "source_bad_answer",
      );
    },
  ),
);
