/** Which bases have cells that change without an edit of a record. */
import { expect, test } from "vitest";
import type { SourceField } from "../../core/source";
import { changesByItself } from "../../core/source/airtable/webhooks";

const schemaOf = (field: Pick<SourceField, "type" | "options">) => {
  const fields = [{ id: "fld1", name: "Field", sourceType: "any", ...field }];
  return { tables: [{ id: "tbl1", name: "Table", primaryFieldId: "fld1", fields }] };
};

test.each([
  ["formula", { formula: "DATETIME_DIFF(NOW(), {fld2}, 'days')" }, true],
  ["formula", { formula: "IS_SAME( today (), {fld2})" }, true],
  ["formula", { formula: "IF(1, FROMNOW({fld2}))" }, true],
  ["formula", { formula: "tonow ({fld2})" }, true],
  ["formula", { formula: "{fld2} & 'KNOW(N)'" }, false],
  ["formula", { formula: "SNOW({fld2})" }, false],
  ["formula", undefined, false],
  ["attachment", undefined, true],
  ["text", { formula: "NOW()" }, false],
  ["last_modified_time", undefined, false],
] as const)("a %s with %o: %s", (type, options, expected) => {
  expect(changesByItself(schemaOf({ type, options }))).toBe(expected);
});

test("where attachment URLs are not stored, their expiry is no change", () => {
  const files = schemaOf({ type: "attachment" });
  expect(changesByItself(files, { hasLastingUrls: true })).toBe(false);
  const now = schemaOf({ type: "formula", options: { formula: "NOW()" } });
  expect(changesByItself(now, { hasLastingUrls: true })).toBe(true);
});
