/** Which tables move with an account, and which of their rows: decided for every table, in an order that works. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { movedTables, tableShapes } from "../../../core/control/account-move/catalog";
import { belongs, parentsFirst, STAYING } from "../../../core/control/account-move/tables";
import { controlDatabase } from "../../support/database";

const { shapes, moved } = await (async () => {
  await using database = await controlDatabase();
  return { shapes: [...(await tableShapes(database.sql))], moved: await movedTables(database.sql) };
})();
const byName = new Map(shapes.map((shape) => [shape.name, shape]));

test("for every table it is decided whether its rows move with an account", () => {
  expect(moved.length).toBeGreaterThan(30);
  const names = moved.map(({ name }) => name);
  expect([...names, ...Object.keys(STAYING)].sort()).toEqual(shapes.map(({ name }) => name).sort());
});

test("a table without a rule is named", () => {
  const invoices = { name: "invoices", columns: ["id"], identity: null, keys: [] };
  expect(() => belongs("invoices", new Map([["invoices", invoices]]))).toThrow(/invoices.*tables\.ts/);
});

/** Sessions are the people's own, and end with the move, as the connections of agents do; used codes are of seconds. */
const DROPPED = new Set([
  "oauth_access_tokens",
  "oauth_clients",
  "oauth_consents",
  "oauth_refresh_tokens",
  "sessions",
  "used_codes",
]);

test("every table with a foreign key to what moves, moves as well", () => {
  const staying = shapes.filter(({ name }) => name in STAYING && !DROPPED.has(name));
  for (const { name, keys } of staying)
    expect([name, keys.filter(({ parent }) => !(parent in STAYING))]).toEqual([name, []]);
});

test("whatever the catalog's order, each table comes after those that it refers to", () => {
  fc.assert(
    fc.property(fc.shuffledSubarray(shapes, { minLength: shapes.length }), (shuffled) => {
      const names = parentsFirst(shuffled).map(({ name }) => name);
      expect(names.toSorted()).toEqual(moved.map(({ name }) => name).sort());
      for (const name of names) {
        for (const { parent } of byName.get(name)!.keys) {
          if (names.includes(parent)) expect(names.indexOf(parent)).toBeLessThanOrEqual(names.indexOf(name));
        }
      }
      expect(names.indexOf("schema_changes")).toBeLessThan(names.indexOf("alert_states"));
    }),
    { numRuns: 50 },
  );
});

test("rows belong to an account by its own key, else by its bases, and only then by its people", () => {
  expect(belongs("api_tokens", byName)).toBe("t.account_id = $1::text");
  expect(belongs("sync_runs", byName)).toBe(
    "((t.base_id) in (select tp.id from bases as tp where tp.account_id = $1::text))",
  );
  expect(belongs("two_factors", byName)).toBe(
    "((t.user_id) in (select tp.id from users as tp where tp.id = any ($2::text[])))",
  );
  expect(belongs("quota_calls", byName)).toBe("t.key = any ($3::text[])");
  expect(belongs("alert_states", byName)).toContain(" or ");
});
