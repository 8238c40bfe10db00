/** Arrays in pools that do not ask their server for its types. */
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { connectReplica } from "../../../core/replica";

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "NULL", "a,b", "{}", '"', "\\", " "),
);
const withoutNul = text.filter((value) => !value.includes("\0"));
// JSON has no -0.
const json = fc
  .jsonValue()
  .filter((value) => !JSON.stringify(value).includes("\\u0000") && value !== null)
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Values by the type of their array's elements. */
const VALUES: Record<string, fc.Arbitrary<unknown>> = {
  text: withoutNul,
  name: fc.constantFrom("a", 'b "c"'),
  uuid: fc.uuid(),
  int4: fc.integer(),
  int8: fc.maxSafeInteger(),
  float8: fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => value + 0),
  numeric: fc.integer().map(String),
  bool: fc.boolean(),
  timestamptz: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }),
  jsonb: json,
};

test.for(Object.entries(VALUES))("arrays of %s arrive as they were sent", async ([type, value]) => {
  const sql = connectReplica(inject("postgresUrl"));
  try {
    const [known] = await sql<{ oid: number }[]>`select ${`${type}[]`}::regtype::oid as oid`;
    const arrays = fc.array(fc.option(value), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(arrays, async (sent) => {
        const [row] = await sql<{ got: unknown; count: number }[]>`
          select x.got, coalesce(array_length(x.got, 1), 0) as count
          from (select ${sql.typed(sent as string[], known!.oid)} as got) as x`;
        expect(row).toEqual({ got: sent, count: sent.length });
      }),
      { numRuns: 50 },
    );
  } finally {
    await sql.end();
  }
});
