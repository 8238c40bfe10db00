/** The splitter of list answers compared with `JSON.parse`, over adversarial answers. */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type PageSplit, splitPage } from "../../core/source/airtable/split";
import { fuzzRuns } from "../support/fuzz";

/** Marks where white space may be in generated JSON; it cannot occur in JSON text. */
const GAP = "\u0001";

/** Pieces of the wire format, so that generated strings resemble structure. */
const fragments = fc.constantFrom(
  '}},{"id":"rec',
  '{"id":"recAAAAAAAAAAAAAA","createdTime":"2024-01-02T03:04:05.000Z","fields":{',
  '"fields":{',
  '":{',
  ":{",
  "}}",
  "}}]",
  '],"offset":"',
  "{",
  "}",
  "[",
  "]",
  '"',
  "\\",
  "\\\\",
  ",",
  " {",
  ' :{"',
  "\n{",
  "é",
  "😀",
  "\ud800",
  "\u0000",
  "rec",
);
const nastyText = fc.oneof(
  fc.string({ maxLength: 8, unit: "binary" }),
  fc.array(fragments, { maxLength: 5 }).map((parts) => parts.join("")),
);
/** A string as JSON, with every allowed way of escaping. */
const stringJson = fc.tuple(nastyText, fc.constantFrom("plain", "ascii", "slash")).map(([text, way]) => {
  const json = JSON.stringify(text);
  if (way === "slash") return json.replaceAll("/", "\\/");
  if (way === "plain") return json;
  return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
});
const idJson = fc.oneof(
  { weight: 8, arbitrary: fc.stringMatching(/^rec[0-9A-Za-z]{1,5}$/).map((id) => JSON.stringify(id)) },
  { weight: 1, arbitrary: fc.constantFrom('"rec"', '"rec\\u0041"', '"usrA"', '"rec-é"', "7", "null") },
);
const timeJson = fc.oneof(
  { weight: 9, arbitrary: fc.constant('"2024-01-02T03:04:05.000Z"') },
  { weight: 1, arbitrary: fc.constantFrom('""', '"2024-01-02"', '"\\u0032"', '"a b"', "null") },
);
const keyJson = fc.oneof(
  fc.stringMatching(/^fld[0-9A-Za-z]{1,4}$/).map((key) => JSON.stringify(key)),
  fc.constantFrom('"id"', '"createdTime"', '"fields"', '"url"', '"a)"', '"__proto__"', '""'),
  stringJson,
);

function objectJson(members: (readonly [string, string])[]): string {
  return `{${GAP}${members.map(([key, value]) => `${key}${GAP}:${GAP}${value}`).join(`${GAP},${GAP}`)}${GAP}}`;
}

function arrayJson(items: string[]): string {
  return `[${GAP}${items.join(`${GAP},${GAP}`)}${GAP}]`;
}

const { value: cellJson, fields: fieldsJson } = fc.letrec<{ value: string; fields: string; record: string }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      stringJson,
      fc.constantFrom("0", "-1.5e3", "true", "null", '{"specialValue":"NaN"}', "{}", "[]", '{"a":{}}'),
      fc.array(tie("value"), { maxLength: 4 }).map(arrayJson),
      fc.array(fc.oneof(fc.constant('{"a":{}}'), tie("record")), { maxLength: 4 }).map(arrayJson),
      tie("fields"),
      tie("record"),
    ),
    fields: fc.array(fc.tuple(keyJson, tie("value")), { maxLength: 4 }).map(objectJson),
    record: fc.tuple(idJson, timeJson, tie("fields")).map(([id, time, fields]) =>
      objectJson([
        ['"id"', id],
        ['"createdTime"', time],
        ['"fields"', fields],
      ]),
    ),
  }),
);

const usual = <T>(arbitrary: fc.Arbitrary<T>, weight = 12) => ({ weight, arbitrary });

/** A record in its usual form, or with keys in another order, missing, additional, or repeated. */
const recordJson = fc
  .tuple(idJson, timeJson, fieldsJson, fc.array(fc.tuple(keyJson, cellJson), { minLength: 1, maxLength: 2 }))
  .chain(([id, time, fields, more]) => {
    const members = [
      ['"id"', id],
      ['"createdTime"', time],
      ['"fields"', fields],
    ] as const;
    return fc.oneof(
      usual(fc.constant(objectJson([...members]))),
      fc.shuffledSubarray([...members, ...more]).map(objectJson),
      fc.constant(objectJson([...members, ...more])),
      fc.constant(objectJson([...members, ['"fields"', "{}"]])),
      cellJson,
    );
  });
const offsetMember = fc
  .oneof(usual(fc.constant('"itrAAAAAAAAAAAAAA/recAAAAAAAAAAAAAA"'), 4), stringJson, fc.constant("null"))
  .map((json) => ['"offset"', json] as const);

/** A complete answer: usually compact and in its usual order, and valid JSON except for injected errors. */
const pageJson = fc
  .tuple(
    fc.array(recordJson, { maxLength: 6 }),
    fc.option(offsetMember, { nil: undefined }),
    fc.oneof(
      usual(fc.constant(undefined)),
      fc.tuple(keyJson, fc.array(recordJson, { maxLength: 2 }).map(arrayJson)),
    ),
    fc.oneof(
      usual(fc.constant([""]), 6),
      fc.array(fc.constantFrom(...Array<string>(12).fill(""), " ", "\n", "\t\r"), {
        minLength: 1,
        maxLength: 40,
      }),
    ),
    fc.oneof(usual(fc.constant(false)), fc.constant(true)),
  )
  .map(([records, offset, other, gaps, isReversed]) => {
    const members = [['"records"', arrayJson(records)] as const, other, offset].filter((part) => !!part);
    const text = objectJson(isReversed ? members.reverse() : members);
    let gap = 0;
    return text.replaceAll(GAP, () => gaps[gap++ % gaps.length]!);
  });

function slices(bytes: Buffer, split: PageSplit): unknown[] {
  return split.ids.map((_, index) =>
    JSON.parse(bytes.toString("utf8", split.starts[index], split.ends[index])),
  );
}

/** Does the split agree with `JSON.parse`? */
function isRight(bytes: Buffer, split: PageSplit): boolean {
  const answer = JSON.parse(new TextDecoder().decode(bytes));
  return (
    isDeepStrictEqual(slices(bytes, split), answer.records) &&
    isDeepStrictEqual(
      split.ids,
      answer.records.map((record: { id: string }) => record.id),
    ) &&
    split.offset === (answer.offset || undefined)
  );
}

test("a split of any answer equals JSON.parse, or there is none", () => {
  fc.assert(
    fc.property(pageJson, (json) => {
      const bytes = Buffer.from(json);
      const split = splitPage(bytes);
      if (split !== null && !isRight(bytes, split)) throw new Error(`wrong split: ${JSON.stringify(split)}`);
    }),
    { numRuns: 3_000 * fuzzRuns },
  );
});

test("a split of broken bytes is correct, or one of its slices cannot be parsed", () => {
  const damage = fc.record({
    at: fc.nat(),
    remove: fc.nat({ max: 6 }),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 2 }).map((bytes) => Buffer.from(bytes)),
      fragments.map((text) => Buffer.from(text)),
    ),
  });
  fc.assert(
    fc.property(pageJson, damage, (json, { at, remove, insert }) => {
      const whole = Buffer.from(json);
      const from = at % (whole.length + 1);
      const bytes = Buffer.concat([whole.subarray(0, from), insert, whole.subarray(from + remove)]);
      const split = splitPage(bytes);
      if (split === null) return;
      try {
        slices(bytes, split);
      } catch {
        return;
      }
      if (!isRight(bytes, split)) throw new Error(`wrong split of ${JSON.stringify(bytes.toString())}`);
    }),
    { numRuns: 3_000 * fuzzRuns },
  );
});

test("a truncated answer has no split", () => {
  const bytes = Buffer.from(page([record("recA", { fldA: "x" }), record("recB", {})], "itrA/recB"));
  for (let length = 0; length < bytes.length; length++) {
    expect(splitPage(bytes.subarray(0, length)), `cut at ${length}`).toBeNull();
  }
});

test("ordinary answers are split, with any text and any cells that are objects", () => {
  const cell = fc.oneof(
    nastyText,
    fc.double({ noNaN: true }),
    fc.array(nastyText, { maxLength: 3 }),
    fc.record({ id: fc.constant("usrA"), name: nastyText }),
    fc.array(fc.record({ id: fc.constant("attA"), url: nastyText, thumbnails: fc.constant({ small: {} }) })),
  );
  const fields = fc.dictionary(fc.stringMatching(/^fld[0-9A-Za-z]{14}$/), cell, { maxKeys: 5 });
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 5 }), fc.boolean(), (cells, hasNext) => {
      const records = cells.map((fields, index) => record(`rec${index}`, fields));
      const bytes = Buffer.from(page(records, hasNext ? "itrA/recB" : undefined));
      const split = splitPage(bytes);
      expect(split).not.toBeNull();
      expect(isRight(bytes, split!)).toBe(true);
    }),
    { numRuns: 1_000 * fuzzRuns },
  );
});

test.each([
  ["look-alikes in an array of a cell", [{ a: {} }, record("recX", {}), record("recY", {})]],
  ["look-alikes alone in an array", [record("recX", {}), record("recY", {})]],
  ["a look-alike that is a cell", record("recX", { fldB: [{ a: {} }, record("recY", {})] })],
  ["a look-alike in text", JSON.stringify([{ a: {} }, record("recX", {}), record("recY", {})])],
])("%s are never mistaken for records", (_, cell) => {
  for (const fields of [{ fldA: cell }, { fldA: cell, fldB: 1 }, { fldA: 1, fldB: cell }]) {
    const bytes = Buffer.from(page([record("recA", fields), record("recB", fields)]));
    const split = splitPage(bytes);
    if (split !== null) expect(split.ids).toEqual(["recA", "recB"]);
  }
});

test.each(['"a": {}', '"a" :{}', '"a" : {}', '"a":\n{}', '"a"\t:{}', '"a)":{}', '"a\\\\":{}', '"":{}'])(
  "a look-alike after an object that ends in %j is no record",
  (member) => {
    const json = page([record("recA", { fldA: [{ a: {} }, record("recX", {})] }), record("recB", {})]);
    const split = splitPage(Buffer.from(json.replace('"a":{}', member)));
    if (split !== null) expect(split.ids).toEqual(["recA", "recB"]);
  },
);

function record(id: string, fields: Record<string, unknown>) {
  return { id, createdTime: "2024-01-02T03:04:05.000Z", fields };
}

function page(records: unknown[], offset?: string): string {
  return JSON.stringify({ records, offset });
}
