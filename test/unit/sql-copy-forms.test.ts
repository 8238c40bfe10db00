/** Results as they are copied from the SQL page. Values are Postgres' texts. */
import { expect, test } from "vitest";
import { csvOf, jsonOf, markdownOf } from "../../apps/console/assets/sql/copy-forms";

const column = (name: string, type: string, isNumber = false) => ({ name, type, isNumber });

test("JSON has the values' own types, and all digits of numbers", () => {
  const columns = [
    column("n", "numeric", true),
    column("ok", "boolean"),
    column("tags", "text[]"),
    column("grid", "integer[]"),
    column("doc", "jsonb"),
    column('a "b"', ""),
  ];
  const text = jsonOf(columns, [
    [
      "123456789012345678901234567890.10",
      "t",
      '{"a,b",NULL,"c\\"d"}',
      "{{1,2},{3,NULL}}",
      '{"x": [1]}',
      "(1,2)",
    ],
    ["NaN", "f", "{}", null, null, "\u2028\n"],
  ]);
  expect(text).toContain('"n": 123456789012345678901234567890.10,');
  const [first, second] = JSON.parse(text);
  expect(first).toMatchObject({
    ...{ ok: true, tags: ["a,b", null, 'c"d'], doc: { x: [1] }, 'a "b"': "(1,2)" },
    grid: [
      [1, 2],
      [3, null],
    ],
  });
  expect(second).toEqual({ n: "NaN", ok: false, tags: [], grid: null, doc: null, 'a "b"': "\u2028\n" });
  expect(jsonOf(columns, [])).toBe("[]\n");
});

test("CSV disarms formulas, and Markdown keeps a value in its cell", () => {
  const columns = [column("=n", "integer", true), column("t|u", "text")];
  const rows = [
    ["-1", '=1 "x"'],
    [null, "a|b\\\nc"],
  ];
  expect(csvOf(columns, rows)).toBe('\'=n,t|u\r\n-1,"\'=1 ""x"""\r\n,"a|b\\\nc"\r\n');
  expect(markdownOf(columns, rows)).toBe(
    '| =n | t\\|u |\n| ---: | --- |\n| -1 | =1 "x" |\n|  | a\\|b\\\\<br>c |\n',
  );
});
