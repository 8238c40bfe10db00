import fc from "fast-check";
import { expect, test } from "vitest";
import { plainValue } from "../../views/plain-value";

test.each([
  ['"2026-13-45"', "2026-13-45"],
  ['{"error":"#ERROR!"}', "#ERROR!"],
  ['{"specialValue":"NaN"}', "NaN"],
  ['["a",{"error":"#DIV/0"},3]', "a, #DIV/0, 3"],
  ['{"id":"usr1","email":"ada@example.org","name":"Ada"}', "Ada"],
  ['{"a":1}', '{"a":1}'],
  ["[]", "[]"],
  ["null", "empty"],
  ['"a long text that was cu', "a long text that was cu"],
  ["(nested too deeply)", "(nested too deeply)"],
])("%s is shown as %s", (json, shown) => expect(plainValue(json)).toBe(shown));

test("a text is shown as it is, and no value breaks the page", () => {
  fc.assert(fc.property(fc.string(), (text) => plainValue(JSON.stringify(text)) === text));
  fc.assert(
    fc.property(fc.json(), fc.nat(40), (json, cut) => typeof plainValue(json.slice(0, cut)) === "string"),
  );
});
