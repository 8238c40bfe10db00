import fc from "fast-check";
import { expect, test } from "vitest";
import { firstLetters } from "../../core/keys";

test("a key is named by its first letters, and a short one not at all", () => {
  expect(firstLetters("Bearer patAbCdEfGhIjKlMn.0123456789abcdef")).toBe("patAbCd…");
  expect(firstLetters("Bearer secret")).toBe("another form");
  expect(firstLetters("")).toBe("another form");
});

test("whatever a client sends, at most a third of it is shown, and nothing but letters and digits", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (key) => {
      const shown = firstLetters(`Bearer ${key}`);
      if (shown === "another form") return;
      expect(shown).toMatch(/^[\w.-]{7}…$/);
      expect(key.length).toBeGreaterThanOrEqual(21);
    }),
  );
});
