/** Cells as they were written, beside what the source returns. */
import { expect, test } from "vitest";
import { couldBecome, differingCells } from "../../core/control/change-sets";

const SAME: [what: string, written: unknown, read: unknown][] = [
  ["a person by id", { id: "usrA" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["a person by e-mail", { email: "a@example.com" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["a person without an e-mail address, whom SQL has by name", { id: "Ada" }, { id: "usrA", name: "Ada" }],
  ["a number as text", "9.50", 9.5],
  ["a file by name", [{ url: "x", filename: "a.pdf" }], [{ id: "attA", url: "y", filename: "a.pdf" }]],
];
const POSSIBLE: typeof SAME = [
  ["a link by name", ["Task 0"], ["recAAAAAAAAAAAAAA"]],
  ["links in one text", "Task 0, Task 1", ["recAAAAAAAAAAAAAA", "recBBBBBBBBBBBBBB"]],
  ["a choice by id", "selAAAAAAAAAAAAAA", "Open"],
  ["Markdown", "- one\n- __two__", "* one\n* **two**\n"],
  ["a time in a field of days", "2026-01-31T23:30:00.000Z", "2026-02-01"],
  ["a day as people write it", "31/01/2026", "2026-01-31"],
  ["a day before its month", "05/01/2026", "2026-01-05"],
  ["a duration as text", "1:30", 5400],
  ["a checkbox as text", "yes", true],
  ["a number that is rounded", 1.26, 1.3],
  [
    "a file by its address alone, of several",
    [{ url: "x" }, { url: "y" }],
    [{ id: "attA", filename: "a.pdf" }],
  ],
];
const IMPOSSIBLE: typeof SAME = [
  ["another name", "New 1", "New 2"],
  ["another number", 1, 3],
  ["another record", ["recAAAAAAAAAAAAAA"], ["recBBBBBBBBBBBBBB"]],
  ["another day", "2026-01-31", "2026-02-14"],
  ["another choice", "Open", "Done"],
  ["another person", { id: "usrB" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["nothing", null, "text"],
  ["a number that is not there", 1, undefined],
  ["a new record of somebody's", "text", undefined],
];
const DIFFERENT: typeof SAME = [
  ["another person", { id: "usrB" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["another person by name", { id: "Bo" }, { id: "usrA", name: "Ada" }],
  ["another file", [{ url: "x", filename: "b.pdf" }], [{ id: "attA", url: "y", filename: "a.pdf" }]],
  ["another barcode", { text: "1" }, { text: "2" }],
];

test.each(SAME)("%s is the same", (_, written, read) => {
  expect(differingCells({ Cell: written }, { Cell: read })).toEqual([]);
});

test.each(DIFFERENT)("%s differs", (_, written, read) => {
  expect(differingCells({ Cell: written }, { Cell: read })).toEqual(["Cell"]);
});

test.each([...SAME, ...POSSIBLE])("%s can be what became of it", (_, written, read) => {
  expect(couldBecome({ Cell: written }, { Cell: read })).toBe(true);
});

test.each(POSSIBLE)("%s is not known to be the same", (_, written, read) => {
  expect(differingCells({ Cell: written }, { Cell: read })).toEqual(["Cell"]);
});

test.each(IMPOSSIBLE)("%s cannot be what became of it", (_, written, read) => {
  expect(couldBecome({ Cell: written }, { Cell: read })).toBe(false);
});

test("a checkbox that was given as text may be off", () => {
  expect(couldBecome({ Name: "A", Done: "no" }, { Name: "A" })).toBe(true);
});
