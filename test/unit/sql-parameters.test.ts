/** Parameters of queries in the console: what counts as one, and what their values become. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { bindParameters, parametersOf } from "../../core/sql-parameters";

test("parameters are names after a colon that Postgres does not use itself", () => {
  for (const [sql, names] of [
    ["select :a, :b_2 from t where x>:a and y=(:Ärger)", ["a", "b_2", "Ärger"]],
    ["select ':no', \":no\", $$:no$$, E'\\':no' -- :no\n/* :no */", []],
    ["select x::text, '1'::int, (x)::date, f(a := 1), a[1:n], a[:n], a[b:c]", []],
    ["select json_object('k':no, k:no, k[1]:no, f(k):no), :v::int, - :v, 5: v", ["v"]],
    ["limit :n offset:m", ["n"]],
    [": a :1 :", []],
  ] as const) {
    expect([sql, parametersOf(sql)]).toEqual([sql, names]);
  }
});

test("values become texts in quotes, and an empty one is null", () => {
  const values = new Map([
    ["a", "it's; drop"],
    ["b", "\\'"],
    ["c", ""],
  ]);
  const { sql } = bindParameters("select :a, :b, :c, :d, ':a'", values);
  expect(sql).toBe("select 'it''s; drop', E'\\\\''', null, null, ':a'");
});

test("offsets in the bound text lead back to the text with names", () => {
  const part = fc.oneof(
    fc.constantFrom("select x", " from t ", "''", ", "),
    fc.constantFrom(" :a ", " :long_name "),
  );
  fc.assert(
    fc.property(fc.array(part), fc.string(), fc.string(), (parts, a, b) => {
      const sql = parts.join("");
      const bound = bindParameters(
        sql,
        new Map([
          ["a", a],
          ["long_name", b],
        ]),
      );
      let last = 0;
      for (let offset = 0; offset <= bound.sql.length; offset++) {
        const at = bound.original(offset);
        expect(at).toBeGreaterThanOrEqual(last);
        // The same character, or a value's parameter.
        if (sql[at] !== ":") expect(sql[at]).toBe(bound.sql[offset]);
        last = at;
      }
      expect(bound.original(bound.sql.length)).toBe(sql.length);
    }),
  );
});
