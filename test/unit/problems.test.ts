/** P1: what keeps a base from being current is reported once, stays until it has ended, and keeps its beginning. */
import { expect, test, vi } from "vitest";
import type { Base, SyncProblem } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { Problems } from "../../core/sync/state/problems";

const orders = { id: "tblOrders", name: "Orders" };
const people = { id: "tblPeople", name: "People" };
const noAnswer = new BasetideError("source_timeout", "No answer");

function watched() {
  const problems = new Problems();
  problems.begin({ sync: {} as Base["sync"] });
  const changed = vi.fn();
  problems.onChange = changed;
  return { problems, changed };
}

test("P1: a missing table is reported once, with why its build failed, until the table is there", () => {
  const { problems, changed } = watched();
  problems.tables([orders], []);
  problems.tables([orders], []);
  expect(changed).toHaveBeenCalledTimes(1);
  problems.buildFailed(orders.id, noAnswer, 4000);
  expect(changed).toHaveBeenCalledTimes(2);
  problems.tables([orders, people], []);
  expect(problems.list()).toMatchObject([
    { kind: "missing_table", tableId: orders.id, name: "Orders", message: "No answer" },
    { kind: "missing_table", tableId: people.id, message: "" },
  ]);
  expect(problems.list()[0]!.nextInMs).toBeGreaterThan(3000);
  problems.tables([people], []);
  problems.tables([], []);
  expect(problems.list()).toEqual([]);
});

test("during the first sync no table is missing", () => {
  const { problems } = watched();
  problems.begin({ sync: null });
  problems.tables([orders], []);
  expect(problems.list()).toEqual([]);
});

test("another lease continues a problem with its beginning, and without reporting it again", () => {
  const now = Date.now();
  const saved: SyncProblem = {
    kind: "missing_table",
    tableId: orders.id,
    name: "Orders",
    message: "",
    since: new Date(now - 90_000),
    nextAt: null,
  };
  const { problems, changed } = watched();
  problems.restore({ problems: [saved], clockAheadMs: 0 } as Partial<Base> as Base);
  problems.tables([orders], []);
  expect(changed).not.toHaveBeenCalled();
  expect(problems.list()[0]!.agoMs).toBeGreaterThanOrEqual(90_000);
});

test("a build that starts over makes no progress until it is further than ever", () => {
  const { problems } = watched();
  const at = (records: number, done = false) => ({
    kind: "first" as const,
    started_at: "",
    tables: [{ name: "orders", source_name: "Orders", records_done: records, records_estimate: null, done }],
  });
  const steps = [at(0), at(100), at(100), at(0), at(100), at(200), at(200, true), at(0)];
  expect(steps.map((step) => problems.advance(step))).toEqual([
    true,
    true,
    false,
    false,
    false,
    true,
    true,
    false,
  ]);
  // Nothing is left to build: another build starts from nothing.
  problems.tables([], []);
  expect(problems.advance(at(0))).toBe(true);
});
