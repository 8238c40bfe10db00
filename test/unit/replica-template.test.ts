/** The rules for every statement of the functions that are installed into a replica. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL("../../sql/replica/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), "utf8").replaceAll(/--.*$/gm, "");
/** Its schemas `own` and `write` are ours alone: no other role may create objects there. */
const DOOR = "write-door.sql";
const names = readdirSync(folder);
const text = names.map(read).join("\n");

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
  // %s %s: a kind and a regclass, which Postgres writes with its schema where the search path has not. A trigger has its table's or
  // view's schema.
  expect(
    strays(
      writes,
      /^(?:\{\{(?:swap|schema|own|write|write_own)\}\}\.|create trigger write instead of|%I\.%I|%I on %s|%(?:[12]\$)?s)/,
    ),
  ).toEqual([]);
  expect(
    strays(/\bupdate\s+(?!set\b|of\b|on\b|or\b)[a-z{%]/g, /^(?:\{\{(?:swap|schema)\}\}\.|%(?:1\$)?s)/),
  ).toEqual([]);
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
  const withRights = names.filter((name) => read(name).includes("security definer"));
  expect(withRights).toEqual([DOOR]);
  // What runs with the rights of its owner looks nothing up where a client may create objects.
  const pinned = read(DOOR).replaceAll(
    /language (?:sql|plpgsql)(?: stable)? security definer set search_path = pg_catalog, pg_temp/g,
    "",
  );
  expect(pinned).not.toContain("security definer");
});
