import { expect, test } from "vitest";
import { MassDeletion } from "../../core/sync/mass-deletion";

const SPELL_MS = 90_000;

test("few rows, or a small share of a table, are deleted without a second look", () => {
  const guard = new MassDeletion(SPELL_MS);
  expect(guard.confirms(10, 10, 0)).toBe(true);
  expect(guard.confirms(100, 1000, 0)).toBe(true);
});

test("many rows are deleted when a second full read misses them too", () => {
  const guard = new MassDeletion(SPELL_MS);
  expect(guard.confirms(101, 1000, 0)).toBe(false);
  expect(guard.confirms(101, 1000, 1)).toBe(true);
  // The next time it happens it is to be confirmed anew.
  expect(guard.confirms(500, 899, 2)).toBe(false);
});

test("an empty answer for a table with rows is believed only after it has lasted", () => {
  const guard = new MassDeletion(SPELL_MS);
  expect(guard.confirms(1000, 1000, 0)).toBe(false);
  expect(guard.confirms(1000, 1000, 1000)).toBe(false);
  expect(guard.confirms(1000, 1000, SPELL_MS - 1)).toBe(false);
  expect(guard.confirms(1000, 1000, SPELL_MS)).toBe(true);
});

test("a read that finds the rows again ends the suspicion", () => {
  const guard = new MassDeletion(SPELL_MS);
  expect(guard.confirms(1000, 1000, 0)).toBe(false);
  expect(guard.confirms(0, 1000, 60_000)).toBe(true);
  expect(guard.confirms(1000, 1000, SPELL_MS)).toBe(false);
});
