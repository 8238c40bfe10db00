/** Cells as they were written, beside what the source returns. */
import { expect, test } from "vitest";
import { differingCells } from "../../core/control/change-sets";

const SAME: [what: string, written: unknown, read: unknown][] = [
  ["a person by id", { id: "usrA" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["a person by e-mail", { email: "a@example.com" }, { id: "usrA", email: "a@example.com", name: "Ada" }],
  ["a person without an e-mail address, whom SQL has by name", { id: "Ada" }, { id: "usrA", name: "Ada" }],
  ["a file by name", [{ url: "x", filename: "a.pdf" }], [{ id: "attA", url: "y", filename: "a.pdf" }]],
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
