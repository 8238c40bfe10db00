import fc from "fast-check";
import { expect, test } from "vitest";
import { type IdKind, idPrefixes, isId, newId } from "../../core/ids";

const kinds = Object.keys(idPrefixes) as IdKind[];

test("an id is recognized as one of its kind, and of no other", () => {
  for (const kind of kinds) {
    const id = newId(kind);
    expect(kinds.filter((other) => isId(other, id))).toEqual([kind]);
  }
});

test("ten thousand ids are all different", () => {
  expect(new Set(Array.from({ length: 10_000 }, () => newId("base"))).size).toBe(10_000);
});

test("an invalid id is not accepted as one", () => {
  fc.assert(fc.property(fc.string(), (text) => !isId("base", text)));
  const id = newId("base");
  for (const wrong of [
    `${id}x`,
    id.slice(0, -1),
    id.toUpperCase(),
    ` ${id}`,
    `${id}\n`,
    `bas_${"\0".repeat(20)}`,
  ]) {
    expect(isId("base", wrong)).toBe(false);
  }
});
