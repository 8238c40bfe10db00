/**
 * Splits SQL text into statements, as psql does: at semicolons outside of quotes and comments.
 *
 * A wrong split is harmless: each part is sent in the extended protocol, where Postgres itself accepts one statement
 * only.
 */
import { nameOfToken, sqlTokens } from "../sql-tokens";

export interface SqlStatement {
  text: string;
  /** Offset in the whole text, in UTF-16 units. */
  start: number;
}

/** Returns the names in `sql` outside of texts and comments: quoted ones as they are, others in lower case. */
export function identifiersOf(sql: string): Set<string> {
  const found = new Set<string>();
  for (const token of sqlTokens(sql)) {
    if (token.kind === "word" || token.kind === "quoted") found.add(nameOfToken(token));
  }
  return found;
}

/** Returns the statements of `sql`, without surrounding spaces; empty ones, and those of comments alone, are left out. */
export function splitStatements(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let start = 0;
  let hasContent = false;
  const close = (end: number) => {
    const part = sql.slice(start, end);
    const text = part.trim();
    if (hasContent) statements.push({ text, start: start + part.indexOf(text) });
    hasContent = false;
  };
  for (const { kind, text, start: at } of sqlTokens(sql)) {
    if (text === ";") {
      close(at);
      start = at + 1;
    } else if (kind !== "comment" && kind !== "space") hasContent = true;
  }
  close(sql.length);
  return statements;
}

/** The first word of a statement, in lower case, after comments and parentheses. */
export function firstWord(statement: string): string {
  for (const { kind, text } of sqlTokens(statement)) {
    if (kind === "word") return text.toLowerCase();
    if (kind !== "comment" && kind !== "space" && text !== "(") break;
  }
  return "";
}
