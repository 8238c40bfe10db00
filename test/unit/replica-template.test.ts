/** The rules for every statement of the functions that are installed into a replica. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL("../../sql/replica/", import.meta.url);
const text = readdirSync(folder)
  .map((name) => readFileSync(new URL(name, folder), "utf8"))
  .join("\n")
  .replaceAll(/--.*$/gm, "");

/** The text after each match of `pattern` that does not begin with one of `allowed`. */
function strays(pattern: RegExp, allowed: RegExp): string[] {
  return [...text.matchAll(pattern)]
    .map((match) => text.slice(match.index, match.index + match[0].length + 40).replaceAll(/\s+/g, " "))
    .filter((found) => !allowed.test(found.replace(/^.*?(?=\{\{|%)/, "")));
}

test("every statement that writes or defines something names its schema", () => {
  const writes =
    /\b(?:insert into|delete from|lock table|truncate|refresh materialized view|(?:create|alter|drop) (?:or replace )?(?:table|view|materialized view|function|sequence|index|trigger)(?: if (?:not )?exists)?)\s+(?!on\b|owner\b)[a-z{%_"]/g;
  expect([...text.matchAll(writes)].length).toBeGreaterThan(80);
  // %s %s: a kind and a regclass, which Postgres writes with its schema where the search path has not. A trigger has its table's.
  expect(strays(writes, /^(?:\{\{(?:swap|schema)\}\}\.|%I\.%I|%I on %s|%(?:[12]\$)?s)/)).toEqual([]);
  expect(strays(/\bupdate\s+(?!set\b|of\b|on\b)[a-z{%]/g, /^(?:\{\{(?:swap|schema)\}\}\.|%s)/)).toEqual([]);
});

test("nothing of ours is created in a schema where other roles may create objects, nor trusted because it exists there", () => {
  expect(
    strays(
      /\bcreate (?:or replace )?(?:table|view|materialized view|sequence|(?:unique )?index [^;]{0,60} on)(?: if not exists)? \{\{schema\}\}\./g,
      /^never$/,
    ),
  ).toEqual([]);
  expect(strays(/\bif (?:not )?exists \{\{schema\}\}\./g, /^never$/)).toEqual([]);
  expect(strays(/\b(?:insert into|update|delete from) \{\{schema\}\}\._/g, /^never$/)).toEqual([]);
  expect(text.includes("security definer")).toBe(false);
});
