/**
 * Texts of customers within generated code: comments and literals that end only where they should.
 *
 * I1. No text ends its comment or literal, and none is read as a directive of a compiler.
 * I2. Characters that reorder what is displayed do not reach the file: code must read as it runs.
 */

import { visibleLines } from "../../visible-text";

const ESCAPED = /[\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u061c\ufeff]|\p{Cs}/gu;

/** The lines of a comment. */
function commentLines(text: string): string[] {
  const lines = visibleLines(text).map((line) => line.trimEnd());
  while (lines.at(-1) === "") lines.pop();
  return lines;
}

/** A JSDoc comment of TypeScript, and a line break. A tag at the start of a line would change how editors read it. */
export function jsDoc(text: string, indent = ""): string {
  const lines = commentLines(text).map((line) => line.replaceAll("*/", "*\\/").replace(/^(\s*)@/, "$1\\@"));
  if (lines.length === 0) return "";
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

/** Lines that all begin with `mark`, each with its line break. */
export function lineComments(mark: string, text: string, indent = ""): string {
  return commentLines(text)
    .map((line) => `${indent}${mark} ${line}`.trimEnd().concat("\n"))
    .join("");
}

/** The docstring of a Python class, and a line break. */
export function docstring(text: string, indent: string): string {
  const lines = commentLines(text).map((line) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"'));
  if (lines.length === 1) return `${indent}"""${lines[0]}"""\n`;
  const [first, ...rest] = lines;
  return `${indent}"""${first}\n${rest.map((line) => (line ? indent + line : "")).join("\n")}\n${indent}"""\n`;
}

/** A text in double quotes that TypeScript, Python, Prisma and JSON read alike. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    ESCAPED,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A key of an object in TypeScript: plain where possible. */
export function key(name: string): string {
  if (name === "__proto__") return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}
