/** How SQL text is split into statements. Postgres checks each part, so a wrong split could only be confusing. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { firstWord, splitStatements } from "../../core/sql-editor/split";

const texts = (sql: string) => splitStatements(sql).map(({ text }) => text);

test("statements end at semicolons outside of quotes and comments", () => {
  expect(texts("select 1; select 2")).toEqual(["select 1", "select 2"]);
  expect(texts(" ;; -- none\n; /* ; /* nested; */ */ ;")).toEqual([]);
  expect(texts("select ';', \";\", $$;$$, $a$;$$;$a$, e'\\';', 'it''s;' -- ;\n, 1; x")).toHaveLength(2);
  expect(texts("select a$b$; select $1;")).toEqual(["select a$b$", "select $1"]);
  expect(texts("select name'x\\'; select 2")).toEqual(["select name'x\\'", "select 2"]);
  expect(texts("select 'open; select 2")).toEqual(["select 'open; select 2"]);
});

test("the first word is the one that Postgres reads", () => {
  expect(firstWord("/* a /* b */ */ -- c\n (( SELECT 1))")).toBe("select");
  expect(firstWord("-- x\rcommit /*\nexplain */")).toBe("commit");
  expect(firstWord("")).toBe("");
});

const word = fc.constantFrom(
  "select",
  "a",
  "1",
  "$1",
  "e",
  "E",
  "é$",
  "from",
  "(",
  ")",
  "-",
  "/",
  "*",
  "::",
  "$",
);
const quoted = fc.oneof(
  fc.string().map((text) => `'${text.replaceAll("'", "''")}'`),
  fc.string().map((text) => `"${text.replaceAll('"', '""')}"`),
  fc.string().map((text) => `e'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`),
  fc.string().map((text) => `$q$${text.replaceAll("$", "")}$q$`),
  fc.string().map((text) => `/*${text.replaceAll(/[*/]/g, "")}*/`),
  fc.string().map((text) => `--${text.replaceAll(/[\n\r]/g, "")}\n`),
);
const statement = fc
  .array(fc.oneof(word, quoted), { minLength: 1, maxLength: 8 })
  .map((parts) => `x ${parts.join(" ")} y`);

test("any statements that are joined by semicolons are found again, each at its place", () => {
  fc.assert(
    fc.property(fc.array(statement, { maxLength: 5 }), (statements) => {
      const sql = statements.join(" ;\n");
      const found = splitStatements(sql);
      expect(found.map(({ text }) => text)).toEqual(statements);
      for (const { text, start } of found) expect(sql.slice(start, start + text.length)).toBe(text);
    }),
  );
});

test("any text at all is split quickly, and nothing but separators, spaces and comments is lost", () => {
  const noise = fc
    .array(fc.oneof(word, quoted, fc.string(), fc.constantFrom(";", "'", '"', "$$", "/*", "*/")))
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(noise, (sql) => {
      const found = splitStatements(sql);
      let at = 0;
      for (const { text, start } of found) {
        expect(start).toBeGreaterThanOrEqual(at);
        expect(sql.slice(start, start + text.length)).toBe(text);
        at = start + text.length;
      }
      firstWord(sql);
    }),
  );
  const began = performance.now();
  splitStatements(`${"a'".repeat(25_000)}${"$".repeat(25_000)}${"/*".repeat(25_000)}`);
  expect(performance.now() - began).toBeLessThan(2000);
});
