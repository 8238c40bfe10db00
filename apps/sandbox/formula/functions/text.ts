/**
 * Text. Positions count from 1, in UTF-16 units.
 */
import { ERROR, type FormulaError, type FormulaValue } from "../types";
import { joinTexts, MAX_TEXT } from "../values";
import { type FunctionSpec, strictFunction, variadic } from "./spec";

export const textFunctions: Record<string, FunctionSpec> = {
  FIND: strictFunction(["text", "text"], find, ["number"]),
  SEARCH: strictFunction(
    ["text", "text"],
    (needle, text, start?: number) => find(needle.toLowerCase(), text.toLowerCase(), start) || null,
    ["number"],
  ),
  LOWER: strictFunction(["text"], (text) => text.toLowerCase()),
  UPPER: strictFunction(["text"], (text) => text.toUpperCase()),
  LEN: strictFunction(["text"], (text) => text.length),
  TRIM: strictFunction(["text"], (text) => text.trim()),
  LEFT: strictFunction(["text", "number"], (text, count) => text.slice(0, atLeast0(count))),
  RIGHT: strictFunction(["text", "number"], (text, count) =>
    text.slice(atLeast0(text.length - atLeast0(count))),
  ),
  MID: strictFunction(["text", "number", "number"], (text, start, count) => {
    const from = atLeast0(start - 1);
    return text.slice(from, from + atLeast0(count));
  }),
  SUBSTITUTE: strictFunction(["text", "text", "text"], substitute, ["number"]),
  CONCATENATE: variadic((values) => joinTexts(values, "")),
  ARRAYJOIN: strictFunction(
    ["value"],
    (value, separator?: string) =>
      joinTexts(Array.isArray(value) ? (value as FormulaValue[]) : [value], separator ?? ", "),
    ["text"],
  ),
  REGEX_MATCH: strictFunction(["text", "pattern"], (text, pattern) => matches(text, pattern)),
};

/** 0 when absent. */
function find(needle: string, text: string, start = 1): number {
  return text.indexOf(needle, atLeast0(start - 1)) + 1;
}

/** Replaces every `old`, or only the occurrence with number `index`. */
function substitute(text: string, old: string, replacement: string, index?: number): FormulaValue {
  if (old === "") return text;
  const parts = text.split(old);
  if (index === undefined) {
    // The length is computed first: nested substitutions could double a text until memory is exhausted.
    const grown = text.length + (parts.length - 1) * (replacement.length - old.length);
    return grown > MAX_TEXT && grown > text.length ? ERROR : parts.join(replacement);
  }
  const at = Math.trunc(index);
  if (!(at >= 1 && at < parts.length)) return text;
  return joinTexts([parts.slice(0, at).join(old), replacement, parts.slice(at).join(old)], "");
}

/** A valid pattern can still fail when it runs, by size or depth. */
function matches(text: string, pattern: RegExp): number | FormulaError {
  try {
    return pattern.test(text) ? 1 : 0;
  } catch {
    return ERROR;
  }
}

function atLeast0(count: number): number {
  return count > 0 ? Math.trunc(count) : 0;
}
