/**
 * Cell readers: convert a cell of the source to a value that its column accepts.
 *
 * I1. A reader takes any JSON value and never throws.
 * I2. Nothing is lost silently: a value that does not fit becomes null and is reported; an unusual value that fits a
 *     text column is stored as its JSON text.
 */
import { isObject } from "../json";
import { isCellHash } from "../source";
import { type IssueReason, NOT_A_NUMBER, type SourceError, sourceError } from "./issue-reasons";
import { type CellReporter, jsonText, storable } from "./map-record-text";
import { dateText, durationText, timestampText } from "./map-record-time";
import type { FileDetails, Row } from "./spec";

/** Reads a cell that is present (neither absent nor null). */
export type CellReader = (cell: unknown, reporter: CellReporter) => Row[string];

type TextReader = (cell: unknown, reporter: CellReporter) => string | null;

/** A plain decimal number, short enough for numeric's 131,072 digits before and 16,383 after the point. */
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)$/;
const MAX_DECIMAL_LENGTH = 1000;

/** The largest width or height that the views over attachments can show, which cast it to `integer`. */
const MAX_PIXELS = 2 ** 31 - 1;

/** Returns a string as it is, anything else as JSON text. */
export const readText: TextReader = (cell, reporter) =>
  typeof cell === "string" ? storable(cell, reporter) : asJson(cell, reporter);

/** Never stores anything else in the column of a hashed field, nor shows it in an issue. */
export const readHash: TextReader = (cell) => (isCellHash(cell) ? cell : null);

/** Returns the result of a formula as text; a failed computation is null. */
export const readComputed: TextReader = (cell, reporter) => {
  const failure = failureOf(cell);
  return failure === undefined ? readText(cell, reporter) : unfit(failure, reporter);
};

export const readNumber: CellReader = (cell, reporter) => {
  if (typeof cell === "number" && Number.isFinite(cell)) return cell;
  // JSON.parse reads 1e999 as Infinity.
  return unfit(
    failureOf(cell) ?? (typeof cell === "number" ? sourceError(String(cell)) : NOT_A_NUMBER),
    reporter,
  );
};

/** The digits are passed on as text, so that a code longer than a double's 15 digits stays exact. */
export const readBarcode: CellReader = (cell, reporter) => {
  if (typeof cell === "number") return readNumber(cell, reporter);
  const text = isObject(cell) ? cell.text : cell;
  if (typeof text === "string" && text.length <= MAX_DECIMAL_LENGTH && DECIMAL.test(text)) return text;
  return unfit(failureOf(cell) ?? NOT_A_NUMBER, reporter);
};

export const readCheckbox: CellReader = (cell, reporter) =>
  typeof cell === "boolean" ? cell : unfit(failureOf(cell) ?? "not true or false", reporter);

export const readDate: CellReader = (cell, reporter) => readTime(cell, dateText, reporter);

export const readTimestamp: CellReader = (cell, reporter) => readTime(cell, timestampText, reporter);

export const readDuration: CellReader = (cell, reporter) => {
  if (typeof cell !== "number") return unfit(failureOf(cell) ?? "not a number of seconds", reporter);
  return durationText(cell) ?? unfit("longer than an interval can be", reporter);
};

export const readButton: TextReader = (cell, reporter) => {
  if (!isObject(cell)) return readText(cell, reporter);
  const shown = textIn(cell.url) ?? textIn(cell.label);
  if (shown !== undefined) return storable(shown, reporter);
  const isBlank = Object.values(cell).every((value) => value === null || value === "");
  return isBlank ? null : readComputed(cell, reporter);
};

export const readPerson: TextReader = (cell, reporter) => {
  const known = isObject(cell) ? personText(cell) : undefined;
  return known === undefined ? readComputed(cell, reporter) : storable(known, reporter);
};

/** The generated text. The source's cell also holds the state of the generation: no text yet is null, not "". */
export const readAiText: TextReader = (cell, reporter) => {
  if (!isObject(cell) || !("value" in cell)) return readComputed(cell, reporter);
  if (typeof cell.value === "string" && cell.value !== "") return storable(cell.value, reporter);
  if (cell.state === "error") return unfit(sourceError(textIn(cell.errorType) ?? ""), reporter);
  if (cell.value === null || cell.value === "") return null;
  return asJson(cell, reporter);
};

export const readAttachments: CellReader = (cell, reporter) => readList(cell, attachmentText, reporter);

/**
 * Reads the details of attachments, at the positions that their URLs have in `readAttachments`; null for any other element.
 * Reports nothing: the other reader reports what is no attachment. A detail of another type than expected is left out.
 */
export const readFiles: CellReader = (cell) => readList(cell, fileDetails, SILENT);

const SILENT: CellReporter = { report: () => {} };

export const readLinks: CellReader = (cell, reporter) => readList(cell, linkText, reporter);

export const readFirstLink: CellReader = (cell, reporter) => firstOf(readList(cell, linkText, reporter));

/** Reads cells with several values: selects, people, looked-up values of any kind. */
export const readItems: CellReader = (cell, reporter) => readList(cell, itemText, reporter);

export const readFirstItem: CellReader = (cell, reporter) => firstOf(readList(cell, itemText, reporter));

/**
 * Reads every element with `read`, and flattens lists within the list by one level; null elements stay. A cell that is
 * not a list becomes a list of one, but a cell that failed as a whole is null.
 */
function readList<Value>(
  cell: unknown,
  read: (item: unknown, reporter: CellReporter) => Value | null,
  reporter: CellReporter,
): (Value | null)[] | null {
  if (!Array.isArray(cell)) {
    const failure = failureOf(cell);
    return failure === undefined ? [read(cell, reporter)] : unfit(failure, reporter);
  }
  const values: (Value | null)[] = [];
  for (const item of cell) {
    if (!Array.isArray(item)) values.push(item === null ? null : read(item, reporter));
    else for (const inner of item) values.push(inner === null ? null : read(inner, reporter));
  }
  return values;
}

function firstOf(texts: (string | null)[] | null): string | null {
  return texts?.find((text) => text !== null) ?? null;
}

function itemText(item: unknown, reporter: CellReporter): string | null {
  if (typeof item === "string") return storable(item, reporter);
  if (!isObject(item)) return readText(item, reporter);
  if ("url" in item) return readButton(item, reporter);
  if (typeof item.text === "string") return storable(item.text, reporter);
  if ("state" in item && "value" in item) return readAiText(item, reporter);
  return readPerson(item, reporter);
}

function attachmentText(item: unknown, reporter: CellReporter): string | null {
  if (isObject(item) && typeof item.url === "string") return storable(item.url, reporter);
  if (isObject(item)) return unfit(failureOf(item) ?? "an attachment without a URL", reporter);
  return readText(item, reporter);
}

function fileDetails(item: unknown): FileDetails | null {
  if (!isObject(item) || typeof item.id !== "string") return null;
  const { filename, type, size, width, height } = item;
  return {
    id: storable(item.id),
    ...(typeof filename === "string" && { filename: storable(filename) }),
    ...(typeof type === "string" && { type: storable(type) }),
    ...(isCount(size, Number.MAX_SAFE_INTEGER) && { size }),
    ...(isCount(width, MAX_PIXELS) && { width }),
    ...(isCount(height, MAX_PIXELS) && { height }),
  };
}

function isCount(value: unknown, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most;
}

function linkText(item: unknown, reporter: CellReporter): string | null {
  return readComputed(isObject(item) && typeof item.id === "string" ? item.id : item, reporter);
}

function readTime(
  cell: unknown,
  read: (text: string) => string | null,
  reporter: CellReporter,
): string | null {
  if (typeof cell !== "string") return unfit(failureOf(cell) ?? "not a date", reporter);
  return read(cell) ?? unfit("not a date", reporter);
}

function personText(person: Record<string, unknown>): string | undefined {
  return textIn(person.email) ?? textIn(person.name) ?? textIn(person.id);
}

/** Returns the source's error value of a failed computation: `{error: "#ERROR!"}`, `{specialValue: "NaN"}`. */
function failureOf(cell: unknown): SourceError | undefined {
  if (!isObject(cell)) return undefined;
  if (typeof cell.error === "string") return sourceError(cell.error);
  return typeof cell.specialValue === "string" ? sourceError(cell.specialValue) : undefined;
}

function asJson(cell: unknown, reporter: CellReporter): string | null {
  return jsonText(cell) ?? unfit("nested too deeply", reporter);
}

function unfit(reason: IssueReason, reporter: CellReporter): null {
  reporter.report(reason);
  return null;
}

/** Returns `value` if it is a non-empty string. */
function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
