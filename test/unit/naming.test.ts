import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quoteIdent, snakeCase } from "../../core/replica";
import { assignNames } from "../../core/replica/naming";

const tables = (...names: string[]) => names.map((name, index) => ({ id: `tbl${index}`, name }));

/** The planner's memory after `names` were given to `entries`. */
function remember(entries: { id: string; name: string }[], names: Map<string, string>) {
  return new Map(entries.map(({ id, name }) => [id, { name: names.get(id)!, sourceName: name }]));
}

describe("snakeCase", () => {
  test.each([
    ["Product Inventory", "product_inventory"],
    ["productInventory", "product_inventory"],
    ["HTTPServer ID", "httpserver_id"],
    ["  Already__snake_case ", "already_snake_case"],
    ["v1.3 (standard(", "v1_3_standard"],
    ["Size (years, minimum) Rollup (from Experiments)", "size_years_minimum_rollup_from_experiments"],
    ["date … (P571)", "date_p571"],
    ["Don't", "dont"],
    ["Customer's Orders", "customers_orders"],
    ["Customer’s Orders", "customers_orders"],
    ["Customers' Orders", "customers_orders"],
    ["'", ""],
    ["Q4 2024 — Ümsätze/Köln", "q4_2024_ümsätze_köln"],
    ["Tasks 🚀👩🏽‍🚀🇨🇭", "tasks"],
    ["1️⃣ First", "1_first"],
    ["ℹ️ Info ™", "info"],
    ["❤️Likes", "likes"],
    ["🎉", ""],
    ["#*!?", ""],
    ["", ""],
    ["注文 一覧", "注文_一覧"],
    ["उत्पाद सूची", "उत्पाद_सूची"],
    ["מוצרים", "מוצרים"],
    ["می‌خواهم", "میخواهم"],
    ["Cafe\u0301 Straße", "café_straße"],
    ["ΟΔΟΣ Αθήνας", "οδος_αθήνας"],
    ["İstanbul", "i\u0307stanbul"],
    ["m² ½", "m²_½"],
    ["a\ud800b\0c", "a_b_c"],
  ])("%j becomes %j", (source, name) => {
    expect(snakeCase(source)).toBe(name);
  });

  test("a snake name is unchanged: NFC, and only letters, digits and marks", () => {
    fc.assert(
      fc.property(anyName, (source) => {
        const name = snakeCase(source);
        expect(snakeCase(name)).toBe(name);
        expect(name).toBe(name.normalize("NFC"));
        expect(name).toMatch(/^([\p{L}\p{N}][\p{L}\p{N}\p{M}]*(_[\p{L}\p{N}][\p{L}\p{N}\p{M}]*)*)?$/u);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("assignNames", () => {
  const given = (names: string[], kind: "table" | "column") => [
    ...assignNames(tables(...names), { kind }).values(),
  ];

  test("collisions are numbered in the order of ids, in any order of input", () => {
    expect(given(["Foo Bar", "foo-bar", "FOO (bar)"], "table")).toEqual([
      "foo_bar",
      "foo_bar_2",
      "foo_bar_3",
    ]);
    const reversed = assignNames(tables("Foo Bar", "foo-bar").reverse(), { kind: "table" });
    expect(reversed.get("tbl0")).toBe("foo_bar");
  });

  test("empty names become table or field", () => {
    expect(given(["🎉", "!!"], "table")).toEqual(["table", "table_2"]);
    expect(given(["🎉", "Field"], "column")).toEqual(["field", "field_2"]);
  });

  test("our columns' names and Postgres's system columns' get a trailing underscore, in columns only", () => {
    const names = ["ID", "Created Time", "ctid", "xmin", "tableoid", "oid"];
    expect(given(names, "column")).toEqual(["id_", "created_time_", "ctid_", "xmin_", "tableoid_", "oid"]);
    expect(given(["id", "ID!"], "column")).toEqual(["id_", "id__2"]);
    expect(given(["ID", "xmin"], "table")).toEqual(["id", "xmin"]);
  });

  test("no table gets the name of one of ours", () => {
    expect(given(["_sync_meta", "__sync_meta__"], "table")).toEqual(["sync_meta", "sync_meta_2"]);
    const remembered = new Map([["tbl0", { name: "_sync_meta", sourceName: "Sync Meta" }]]);
    expect(assignNames(tables("Sync Meta"), { remembered, kind: "table" }).get("tbl0")).toBe("sync_meta");
  });

  test("long names are truncated between characters, the number included", () => {
    expect(given([`${"é".repeat(31)}🎉eé`], "table")).toEqual([`${"é".repeat(31)}`]);
    const long = "a".repeat(80);
    expect(given([long, long], "table")).toEqual(["a".repeat(63), `${"a".repeat(61)}_2`]);
    // a Devanagari syllable of three code points and nine bytes stays whole
    expect(given([`${"a".repeat(56)}क्षि`], "table")).toEqual(["a".repeat(56)]);
    expect(given([`${"a".repeat(62)} tail`], "table")).toEqual(["a".repeat(62)]);
    expect(given([`e${"\u0331".repeat(60)}`], "table")).toEqual([`e${"\u0331".repeat(31)}`]);
  });

  test("names swap when source names swap", () => {
    const remembered = remember(
      tables("Alpha", "Beta"),
      assignNames(tables("Alpha", "Beta"), { kind: "table" }),
    );
    expect([...assignNames(tables("Beta", "Alpha"), { remembered, kind: "table" }).values()]).toEqual([
      "beta",
      "alpha",
    ]);
  });

  test("a renamed entry gets the name that another gives up, never one that another has had", () => {
    const before = tables("Alpha", "Beta", "Gamma");
    const remembered = remember(before, assignNames(before, { kind: "table" }));
    const names = (...now: string[]) => [
      ...assignNames(tables(...now), { remembered, kind: "table" }).values(),
    ];
    expect(names("Beta", "Beta", "Gamma")).toEqual(["beta_2", "beta", "gamma"]);
    expect(names("Gamma", "Alpha", "Beta")).toEqual(["gamma", "alpha", "beta"]);
    expect(names("Beta", "Beta 3", "Gamma")).toEqual(["beta", "beta_3", "gamma"]);
  });

  test("a rename that changes no word changes no name", () => {
    const before = tables("Foo", "foo!");
    const remembered = remember(before, assignNames(before, { kind: "table" }));
    const entries = [...tables("FOO?", "(foo)"), { id: "tbl00", name: "Foo" }];
    expect([...assignNames(entries, { remembered, kind: "table" }).values()]).toEqual([
      "foo",
      "foo_2",
      "foo_3",
    ]);
  });

  test("a name that was assigned when apostrophes separated words stays", () => {
    const remembered = new Map([["tbl0", { name: "customer_s_orders", sourceName: "Customer's Orders" }]]);
    for (const now of ["Customer's Orders", "Customer’s Orders", "customers orders"]) {
      expect([...assignNames(tables(now), { remembered, kind: "table" }).values()]).toEqual([
        "customer_s_orders",
      ]);
    }
  });

  test("I1: names are unique, 1 to 63 bytes, well formed, and none of ours", () => {
    fc.assert(
      fc.property(manyEntries, fc.constantFrom("table", "column"), (entries, kind) => {
        const names = [...assignNames(entries, { kind }).values()];
        expect(new Set(names.map((name) => name.normalize("NFC").toLowerCase())).size).toBe(entries.length);
        for (const name of names) {
          expect(Buffer.byteLength(name)).toBeGreaterThan(0);
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
          expect(name.isWellFormed() && name === name.normalize("NFC")).toBe(true);
          expect(kind === "column" ? ["id", "created_time", "ctid", "xmin"] : ["_sync_meta"]).not.toContain(
            name,
          );
        }
      }),
    );
  });

  test("I2: a name stays when entries are added, removed or reordered, whatever happens to the others", () => {
    fc.assert(
      fc.property(manyEntries, manyEntries, fc.infiniteStream(fc.nat()), (before, others, random) => {
        const remembered = remember(before, assignNames(before, { kind: "table" }));
        const kept = before.filter(() => random.next().value! % 2 === 0);
        const keptIds = new Set(kept.map(({ id }) => id));
        const now = [...others.filter(({ id }) => !keptIds.has(id)), ...kept];
        const names = assignNames(now, { remembered, kind: "table" });
        for (const { id } of kept) expect(names.get(id)).toBe(remembered.get(id)!.name);
        const shuffled = now
          .map((entry) => ({ entry, at: random.next().value! }))
          .sort((a, b) => a.at - b.at)
          .map(({ entry }) => entry);
        expect(assignNames(shuffled, { remembered, kind: "table" })).toEqual(names);
        expect(assignNames(now, { remembered: remember(now, names), kind: "table" })).toEqual(names);
      }),
    );
  });
});

test("quoteIdent doubles quotes and refuses what Postgres could not read", () => {
  expect(quoteIdent('a"b')).toBe('"a""b"');
  expect(() => quoteIdent("")).toThrow(expect.objectContaining({ code: "internal" }));
  expect(() => quoteIdent("a\0b")).toThrow(expect.objectContaining({ code: "internal" }));
});

const anyName = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.string({ unit: "binary", maxLength: 60 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units)),
  fc
    .array(
      fc.constantFrom(
        "Foo",
        "foo",
        " ",
        "_2",
        "_",
        "ID",
        "é",
        "e\u0301",
        "🎉",
        "\ufe0f",
        "क्षि",
        "𝐀",
        "a",
        "x",
      ),
      {
        maxLength: 30,
      },
    )
    .map((parts) => parts.join("")),
  fc.constantFrom("id", "Created Time", "_sync_meta", "ctid", "Field", "Table 2", "foo 2"),
);

const manyEntries = fc.uniqueArray(
  fc.record({ id: fc.string({ minLength: 1, maxLength: 2 }), name: anyName }),
  {
    selector: ({ id }) => id,
    maxLength: 25,
  },
);
