/** Which texts use an old name: as a name, and of the right table. */
import { expect, test } from "vitest";
import type { Alias } from "../../core/replica";
import { usesOf } from "../../core/sql-editor/old-names";
import { identifiersOf } from "../../core/sql-editor/split";

const alias = (over: Partial<Alias>): Alias => ({
  tableId: "tbl1",
  fieldId: null,
  table: "work",
  column: null,
  name: "tasks",
  madeAt: new Date(0),
  expiresAt: new Date(1),
  ...over,
});
const table = alias({});
const column = alias({ fieldId: "fld1", column: "status", name: "state" });

test.each([
  ["select state from tasks", [table, column]],
  ["select w.STATE from work as w", [column]],
  ['select "state" from "public"."work"', [column]],
  ["select status from work", []],
  ["select state from other", []],
  ["select 'state' from work -- state", []],
  ["select e'it\\'s state' from work /* state /* tasks */ */", []],
  ["select $$state$$ from work", []],
  ['select "State" from work', []],
  ["select 1 as x, work.state2 from work", []],
  ["select * from tasks", [table]],
])("%s", (sql, wanted) => {
  const saved = [{ id: "q1", name: "mine", sql }];
  const found = usesOf([table, column], saved, { views: [], functions: [], statements: [] });
  expect(found.flatMap(({ aliases }) => aliases)).toEqual(wanted);
});

test("views count by what they depend on, and statements are listed with their calls, without those of others", () => {
  const uses = usesOf([table, column], [], {
    views: [{ name: "mine", text: "select status as state", aliases: [{ scope: "tbl1", name: "state" }] }],
    functions: [{ name: "f()", text: "begin return (select count(*) from tasks); end" }],
    statements: [
      { text: "select state from work where id = $1", calls: 7 },
      { text: "select 1", calls: 9 },
    ],
  });
  expect(uses.map(({ kind, name, calls, aliases }) => [kind, name, calls, aliases])).toEqual([
    ["view", "mine", undefined, [column]],
    ["function", "f()", undefined, [table]],
    ["statement", "", 7, [column]],
  ]);
});

test("a trigger's function names columns of its table without naming the table", () => {
  const uses = usesOf([table, column], [], {
    views: [],
    functions: [],
    triggers: [
      {
        name: "a on work",
        tableId: "tbl1",
        text: "begin if new.state = 'x' then return null; end if; return new; end",
      },
      {
        name: "b on work",
        tableId: "tbl1",
        text: "begin perform to_jsonb(new) ->> 'state'; return new; end",
      },
      {
        name: "c on other",
        tableId: "tbl2",
        text: "begin if new.state = 'x' then return null; end if; return new; end",
      },
      {
        name: "d on other",
        tableId: "tbl2",
        text: "begin update work set state = new.state; return new; end",
      },
      { name: "e on work", tableId: "tbl1", text: "begin return new; end -- state" },
    ],
    statements: [],
  });
  expect(uses.map(({ kind, name, aliases }) => [kind, name, aliases])).toEqual([
    ["trigger", "a on work", [column]],
    ["trigger", "b on work", [column]],
    ["trigger", "d on other", [column]],
  ]);
});

test("identifiers of any text are found without an error", () => {
  expect([...identifiersOf('select a."B""c", Ünï from "x')]).toEqual([
    "select",
    "a",
    'B"c',
    "ünï",
    "from",
    "x",
  ]);
});
